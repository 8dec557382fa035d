"""The planner as a service: REST API, CDS Hooks and a page, for one subject at a time."""
