-- What an entry gives beside its bindings: globs over `server:tool`. Both are
-- null where it gives nothing more.

alter table public.mcp_v2
    add column if not exists filter_allow text[],
    add column if not exists filter_deny text[];
