-- Which definition of a server was seen to ask its client something during a
-- call: from then on each principal gets a process of its own.
alter table public.mcp_server add column if not exists asks text;
