-- Tells every Portway what changed: `NOTIFY portway, '<who> <what>'`. Only
-- numbers are told, never values. Who: what the session calls itself in
-- `portway.origin`, or `-`. What: `entries 1,2,3`, `records`, `servers`, or
-- `all` when there is too much to tell.

create or replace function portway.say(what text) returns void
    language sql
    set search_path = ''
    as $$
        select pg_catalog.pg_notify(
            'portway',
            coalesce(nullif(pg_catalog.current_setting('portway.origin', true), ''), '-')
                || ' ' || what)
    $$;

-- A notice holds 8,000 bytes; 300 numbers of up to 19 digits fit.
create or replace function portway.say_entries(ids bigint[]) returns void
    language plpgsql
    set search_path = ''
    as $$
    begin
        if cardinality(ids) > 300 then
            perform portway.say('all');
        elsif cardinality(ids) > 0 then
            perform portway.say('entries ' || array_to_string(ids, ','));
        end if;
    end
    $$;

-- Definer's rights, so that it works for whoever may write to the tables.
create or replace function portway.entries_came_or_went() returns trigger
    language plpgsql security definer
    set search_path = ''
    as $$
    begin
        perform portway.say_entries(array(select id from changed order by id limit 301));
        return null;
    end
    $$;

-- When a key was last used is news to nobody.
create or replace function portway.entries_edited() returns trigger
    language plpgsql security definer
    set search_path = ''
    as $$
    begin
        perform portway.say_entries(array(
            select changed.id from changed join before using (id)
            where (to_jsonb(changed) - 'last_used_at')
                is distinct from (to_jsonb(before) - 'last_used_at')
            order by changed.id limit 301));
        return null;
    end
    $$;

create or replace function portway.bindings_changed() returns trigger
    language plpgsql security definer
    set search_path = ''
    as $$
    begin
        perform portway.say_entries(
            array(select distinct mcp_id from changed order by mcp_id limit 301));
        return null;
    end
    $$;

create or replace function portway.tools_edited() returns trigger
    language plpgsql security definer
    set search_path = ''
    as $$
    begin
        perform portway.say_entries(array(
            select distinct bound.mcp_id
            from changed join public.mcp_binding bound on bound.tool_id = changed.id
            order by bound.mcp_id limit 301));
        perform portway.say('records');
        return null;
    end
    $$;

create or replace function portway.said() returns trigger
    language plpgsql security definer
    set search_path = ''
    as $$
    begin
        perform portway.say(tg_argv[0]);
        return null;
    end
    $$;

create or replace trigger portway_came after insert on public.mcp_v2
    referencing new table as changed
    for each statement execute function portway.entries_came_or_went();
create or replace trigger portway_edited after update on public.mcp_v2
    referencing old table as before new table as changed
    for each statement execute function portway.entries_edited();
create or replace trigger portway_went after delete on public.mcp_v2
    referencing old table as changed
    for each statement execute function portway.entries_came_or_went();

create or replace trigger portway_came after insert on public.mcp_binding
    referencing new table as changed
    for each statement execute function portway.bindings_changed();
create or replace trigger portway_edited after update on public.mcp_binding
    referencing new table as changed
    for each statement execute function portway.bindings_changed();
create or replace trigger portway_went after delete on public.mcp_binding
    referencing old table as changed
    for each statement execute function portway.bindings_changed();

create or replace trigger portway_edited after update on public.tool
    referencing new table as changed
    for each statement execute function portway.tools_edited();
create or replace trigger portway_came_or_went after insert or delete on public.tool
    for each statement execute function portway.said('records');
create or replace trigger portway_changed after insert or update or delete on public.mcp
    for each statement execute function portway.said('records');
create or replace trigger portway_changed after insert or update or delete on public.mcp_server
    for each statement execute function portway.said('servers');

create or replace trigger portway_changed
    after insert or update or delete on public.mcp_server_definition
    for each statement execute function portway.said('servers');

create or replace trigger portway_emptied after truncate on public.mcp_v2
    for each statement execute function portway.said('all');
create or replace trigger portway_emptied after truncate on public.mcp_binding
    for each statement execute function portway.said('all');
create or replace trigger portway_emptied after truncate on public.tool
    for each statement execute function portway.said('all');
create or replace trigger portway_emptied after truncate on public.mcp_server
    for each statement execute function portway.said('all');
create or replace trigger portway_emptied after truncate on public.mcp_server_definition
    for each statement execute function portway.said('all');

revoke all on all functions in schema portway from public;
