-- What was spent before days were counted: on the day on which the run was last written to.
INSERT INTO spending (day, agent, usd_micros, tokens)
SELECT to_char(to_timestamp(updated_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD'), agent,
    SUM(usd_micros), SUM(tokens_input + tokens_output)
FROM runs WHERE usd_micros <> 0 OR tokens_input <> 0 OR tokens_output <> 0
GROUP BY 1, 2;
