-- How each agent's last turn left it, so that ten runs do not each find out about the same limit.
CREATE TABLE agent_health (
    agent TEXT NOT NULL PRIMARY KEY,
    failure TEXT NOT NULL,
    detail TEXT NOT NULL,
    until BIGINT NOT NULL,
    at BIGINT NOT NULL
);

-- The CLIs do not lock their sessions: two that go on with the same one both write to it.
CREATE TABLE session_owners (
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (id),
    PRIMARY KEY (agent, session)
);

INSERT INTO session_owners (agent, session, run_id)
SELECT sessions.agent, sessions.session, MAX(sessions.run_id)
FROM sessions JOIN runs ON runs.id = sessions.run_id
WHERE runs.finished_at IS NULL AND sessions.session <> ''
GROUP BY sessions.agent, sessions.session;
