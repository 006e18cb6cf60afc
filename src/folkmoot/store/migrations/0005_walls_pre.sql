-- The second wall: requests are served under a role that sees the rows of one tenant. The first is the condition in every statement.

-- Raises it around every table with a tenant_id that has none yet, and says whether all have one. It is called after every upgrade,
-- so that no table of a later migration stays outside. False where the user may not make the role or be given it: nothing is changed then.
create function folkmoot_raise_walls() returns boolean language plpgsql as $$
declare
    open_table record;
begin
    -- Of the server, not of the database: others that migrate at this moment may make it first.
    if not exists (select from pg_roles where rolname = 'folkmoot_api') then
        begin
            create role folkmoot_api nologin;
        exception when duplicate_object or unique_violation then
            null;
        end;
    end if;
    if not pg_has_role('folkmoot_api', 'set') then
        -- Without inheriting: the policies are for who has taken the role on, not for who may.
        grant folkmoot_api to current_user with set true, inherit false;
    end if;
    for open_table in
        select c.oid::regclass as name, c.relname, exists (
            select from pg_policy p where p.polrelid = c.oid and p.polname = 'tenant_wall') as has_policy
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
        where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
            and not (c.relrowsecurity and has_table_privilege('folkmoot_api', c.oid, 'select') and exists (
                select from pg_policy p where p.polrelid = c.oid and p.polname = 'tenant_wall'))
        order by c.relname
    loop
        if not open_table.has_policy then
            -- The setting is read once for a statement. Without one it is an error: nobody sees all by having forgotten it.
            execute format(
                'create policy tenant_wall on %s to folkmoot_api using (tenant_id = (select current_setting(''folkmoot.tenant'')::uuid)) '
                'with check (tenant_id = (select current_setting(''folkmoot.tenant'')::uuid))', open_table.name);
        end if;
        execute format('alter table %s enable row level security', open_table.name);
        -- No request makes a tenant, and none rewrites what the audit log says.
        execute format('grant %s on %s to folkmoot_api', case open_table.relname
            when 'tenant' then 'select' when 'audit' then 'select, insert' else 'select, insert, update, delete' end, open_table.name);
    end loop;
    if not (has_table_privilege('folkmoot_api', 'clock_shift', 'select') and has_table_privilege('folkmoot_api', 'worker', 'select')
            and has_schema_privilege('folkmoot_api', current_schema(), 'usage')) then
        grant select on clock_shift, worker to folkmoot_api;
        execute format('grant usage on schema %I to folkmoot_api', current_schema());
    end if;
    return true;
exception when insufficient_privilege then
    return false;
end $$;
