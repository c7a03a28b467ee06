"""The drill: agents and supervisors killed on purpose, in every way that is known, and a judgement of what is left."""
