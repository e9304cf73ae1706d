//! PostgreSQL itself under faults.
