-- App runs, which a program of a user's opens, pings and ends; and what the runs of a tree have to do with each other.

alter table process
    alter column namespace_id drop not null,
    alter column definition_id drop not null,
    alter column definition_version drop not null,
    add column app_name text,
    add column app_description text,
    -- pairs of name and value, as the resolved definition of other runs has them
    add column app_inputs jsonb,
    add column ping_limit interval,
    -- when an App run counts as lost, unless it is pinged before
    add column lost_at timestamptz,
    -- it may have started others, and where it has ended other than Completed, those were not all asked to stop yet
    add column stops_below boolean not null default false;
-- No worker ever has an App run, it is at work until it has ended, and it is the root of its tree. Not valid, so that nobody waits
-- while all runs are looked at: `upgrade` validates what is left so, after its commit.
alter table process add constraint process_app check (
    case when kind = 'App' then
        num_nonnulls(namespace_id, definition_id, definition_version, parent_id, worker_id, ready_at, deadline_at, pending_id) = 0
        and num_nulls(app_name, app_inputs, ping_limit) = 0 and length(app_name) between 1 and 200 and ping_limit > '0' and (lost_at is null) = (ended_at is not null)
        and status in ('Running', 'Completed', 'Failed', 'Stopped')
    else
        num_nulls(namespace_id, definition_id, definition_version) = 0
        and num_nonnulls(app_name, app_description, app_inputs, ping_limit, lost_at) = 0
    end) not valid;

create index process_by_app on process (tenant_id, app_name, created_at desc, run_id desc) where app_name is not null;
-- Lists have runs of interactions alone, however many of apps there are.
drop index process_by_date, process_by_status;
create index process_by_date on process (tenant_id, created_at desc, run_id desc) where kind = 'Interaction';
create index process_by_status on process (tenant_id, status, created_at desc, run_id desc) where kind = 'Interaction';
create index process_lost on process (lost_at) where lost_at is not null;
-- Children that a parent's end may have to stop.
create index process_open_children on process (tenant_id, parent_id)
    where parent_id is not null and ended_at is null and stopped_by is null;
-- What the sweep has to look at: nothing, but for a moment after such an end.
create index process_to_stop_below on process (tenant_id, run_id) where stops_below and status in ('Failed', 'Stopped', 'TimedOut');

-- What became of a thing that waited, as the API's receipt says it; `rootProcessId` is null where the run is its own root.
create or replace function folkmoot_decided(w pending) returns jsonb language sql stable as $$
    select jsonb_build_object('type', 'approval.decided', 'timestamp', folkmoot_told(w.answered_at), 'data', jsonb_build_object(
        'id', w.pending_id, 'runId', w.run_id, 'rootProcessId', (
            select nullif(p.tree_root_id, p.run_id) from process p where p.tenant_id = w.tenant_id and p.run_id = w.run_id),
        'kind', w.kind, 'status', w.outcome, 'agree', w.answer -> 'agree',
        'text', coalesce(w.answer -> 'answer', w.answer -> 'message'), 'passed', w.answer -> 'pass',
        'argumentsHash', w.answer -> 'argumentsHash', 'reason', w.answer -> 'reason', 'dateAnswered', folkmoot_told(w.answered_at),
        'answeredById', w.answered_by, 'answeredByName', w.answered_by_name, 'channel', w.channel))
$$;
