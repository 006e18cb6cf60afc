-- Runs that start runs: their limits, what a waiting one awaits, and how the end of one wakes the other.

alter table process add column depth integer not null default 0 check (depth >= 0); -- how many interaction runs are above it
alter table process add column started_by text; -- the participant of its parent
-- all that the run awaits now, also beside a person; and since when it waits for nothing else, which is time at work; a claim clears both
alter table process add column await_ids uuid[];
alter table process add column awaits_since timestamptz;
alter table process add constraint process_awaits check (
    (await_ids is null or status in ('PendingSubInteractions', 'PendingApproval', 'PendingHuman'))
    and (awaits_since is null or status = 'PendingSubInteractions'));
-- no run may have a deadline that is no time: whoever claims it with others could claim none of them
update process set duration_auto_termination = least(duration_auto_termination, '999999 days'), duration_human_timeout = least(duration_human_timeout, '999999 days')
where greatest(duration_auto_termination, duration_human_timeout) >= '1000000 days';
alter table process add constraint process_durations check (greatest(duration_auto_termination, duration_human_timeout) < '1000000 days');
-- the sub-runs of a swarm that have not ended
create index process_of_swarm on process (tenant_id, swarm_root_id) where parent_kind = 'Interaction' and ended_at is null;

-- The tree below a topmost interaction run, made when its first sub-run is started. Each start locks it.
create table swarm (
    tenant_id uuid not null,
    root_id uuid not null,
    max_depth integer not null check (max_depth >= 0),
    max_concurrent integer not null check (max_concurrent >= 0),
    max_total integer not null check (max_total >= 0),
    -- sub-runs ever started
    started integer not null default 0 check (started between 0 and max_total),
    primary key (tenant_id, root_id)
);

-- A waiting run: for which of its sub-runs a participant waits, one row for each who does. Its id is that of the call that asked for it. `waits_for`: how
-- many of them must still end.
create table sub_run_await (
    tenant_id uuid not null,
    run_id uuid not null,
    await_id uuid not null,
    sub_run_ids uuid[] not null check (cardinality(sub_run_ids) >= 1),
    is_all boolean not null,
    participant text not null,
    author_id uuid,
    thread_id text not null,
    waits_for integer not null check (waits_for >= 0),
    started_at timestamptz not null,
    primary key (tenant_id, run_id, await_id)
);

-- How many of these runs must still end until an await of all of them, or of the first, is over.
create function folkmoot_waits_for(tenant uuid, sub_run_ids uuid[], is_all boolean) returns integer language sql stable as $$
    select case when is_all then count(*) filter (where ended_at is null)
        when count(*) filter (where ended_at is not null) > 0 then 0 else 1 end::integer
    from process where tenant_id = tenant and run_id = any(sub_run_ids)
$$;

-- A sub-run has ended, by whatever door: its parent's signal moves, and the awaits of now that have it are nearer their ends. At the
-- end of any the parent waits no longer. The parent's row is locked first, and what it awaits is read after that: a pause at the same moment is
-- either seen here, or finds its signal moved. Locks go from child to parent.
create function folkmoot_sub_run_ended() returns trigger language plpgsql as $$
declare
    awaited uuid[];
    is_over boolean;
begin
    perform from process where tenant_id = new.tenant_id and run_id = new.parent_id for no key update;
    select await_ids into awaited from process where tenant_id = new.tenant_id and run_id = new.parent_id and ended_at is null;
    if not found then
        return null;
    end if;
    with lowered as (
        update sub_run_await set waits_for = waits_for - 1
        where tenant_id = new.tenant_id and run_id = new.parent_id and await_id = any(awaited) and new.run_id = any(sub_run_ids) and waits_for > 0
        returning waits_for)
    select coalesce(bool_or(waits_for = 0), false) into is_over from lowered;
    if is_over then
        update process p set
            signal_number = p.signal_number + 1, ready_at = least(p.ready_at, t.now),
            execution_time = p.execution_time + coalesce(t.now - p.awaits_since, '0'), awaits_since = null
        from (select folkmoot_now() as now) t where p.tenant_id = new.tenant_id and p.run_id = new.parent_id;
    else
        update process set signal_number = signal_number + 1 where tenant_id = new.tenant_id and run_id = new.parent_id;
    end if;
    return null;
end $$;
create trigger sub_run_ended after update of ended_at on process for each row
    when (old.ended_at is null and new.ended_at is not null and new.parent_kind = 'Interaction')
    execute function folkmoot_sub_run_ended();

-- What a pause awaits.
create type append_await as (id uuid, sub_run_ids uuid[], is_all boolean, participant text, author_id uuid, thread_id text);
-- What the fenced append takes: a type of its own, since workers of the version before go on with the one that they know, and no
-- row of theirs would have a place for what is new: the awaits, and when the run is ready though they are not over (its time runs out).
create type append_run_4 as (
    ord integer, tenant_id uuid, run_id uuid, number bigint, claim_id uuid, signal bigint, firm integer, total integer, ends run_status,
    releases boolean, output text, failure text, ready_in double precision, errors integer, pauses run_status, pending_id uuid,
    awaits append_await[], ready_by timestamptz
);
