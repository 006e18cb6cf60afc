-- name: lock_parent^
-- Whoever is to start something: held until the start's transaction ends, so that the parent's end waits for it, and sees it then.
select kind, status, app_name, tree_root_id, coalesce(lost_at <= folkmoot_now(), false) as is_lost from process
where tenant_id = :tenant_id and run_id = :run_id for share;

-- name: root_of$
select tree_root_id from process where tenant_id = :tenant_id and run_id = :run_id;

-- name: nodes
-- The tree that a run belongs to, the oldest first, so that a parent comes before what it started. No more is read than is shown, but
-- for the numbers, which end at the most that is counted.
select p.run_id, p.kind, p.parent_id, p.status, p.definition_id, p.definition_version, coalesce(p.app_name, d.name) as name,
    n.name as namespace_name, p.created_by, coalesce(p.started_by, u.name) as created_by_name, p.created_at, p.started_at, p.ended_at, p.tree_root_id,
    p.ended_at is null and p.stopped_by is not null as is_to_stop, a.id as agent_run,
    (select count(*) from (select from process c where c.tenant_id = p.tenant_id and c.parent_id = p.run_id limit :most) c) as children,
    (select count(*) from pending w where w.tenant_id = p.tenant_id and w.run_id = p.run_id and num_nulls(w.outcome) = 1) as waiting
from process p
left join definition d on d.tenant_id = p.tenant_id and d.definition_id = p.definition_id
left join namespace n on n.tenant_id = p.tenant_id and n.namespace_id = p.namespace_id
left join app_user u on u.tenant_id = p.tenant_id and u.user_id = p.created_by
left join agent_run a on a.tenant_id = p.tenant_id and a.run_id = p.run_id
where p.tenant_id = :tenant_id
    and p.tree_root_id = (select r.tree_root_id from process r where r.tenant_id = :tenant_id and r.run_id = :run_id)
order by p.created_at, p.run_id limit :limit;

-- name: node^
-- One run as its tree shows it.
select p.run_id, p.kind, p.parent_id, p.status, p.definition_id, p.definition_version, coalesce(p.app_name, d.name) as name,
    n.name as namespace_name, p.created_by, coalesce(p.started_by, u.name) as created_by_name, p.created_at, p.started_at, p.ended_at,
    p.ended_at is null and p.stopped_by is not null as is_to_stop, a.id as agent_run,
    (select count(*) from (select from process c where c.tenant_id = p.tenant_id and c.parent_id = p.run_id limit :most) c) as children,
    (select count(*) from pending w where w.tenant_id = p.tenant_id and w.run_id = p.run_id and num_nulls(w.outcome) = 1) as waiting,
    (with recursive above as (
        select q.parent_id from process q where q.tenant_id = :tenant_id and q.run_id = :run_id
        union all
        select q.parent_id from process q join above a on q.run_id = a.parent_id where q.tenant_id = :tenant_id)
     select count(*) from above where parent_id is not null) as depth
from process p
left join definition d on d.tenant_id = p.tenant_id and d.definition_id = p.definition_id
left join namespace n on n.tenant_id = p.tenant_id and n.namespace_id = p.namespace_id
left join app_user u on u.tenant_id = p.tenant_id and u.user_id = p.created_by
left join agent_run a on a.tenant_id = p.tenant_id and a.run_id = p.run_id
where p.tenant_id = :tenant_id and p.run_id = :run_id;

-- name: kind_of$
select kind from process where tenant_id = :tenant_id and run_id = :run_id;

-- name: stop_children
-- What a run started is asked to stop, in the way of a request: one that nobody has begun is Stopped at once. The run at hand has
-- itself ended other than Completed, or it is Completed, and a run above it has so ended. Only flags are set, and whoever holds a
-- child's row is not waited for: it may be the child's own end, which waits for its parent. What was skipped is found by the sweep. Agent runs
-- that may delegate are stopped with what they delegated (`delegating_children`).
with t as materialized (select folkmoot_now() as now),
child as materialized (
    select c.tenant_id, c.run_id, c.status = 'New' as is_new, ended.run_id as ended_id, ended.status as ended_status,
        parent.run_id = ended.run_id as is_parent
    from process c join process parent on parent.tenant_id = c.tenant_id and parent.run_id = c.parent_id
        join process ended on ended.tenant_id = c.tenant_id and ended.run_id = :ended_id
    where c.tenant_id = :tenant_id and c.parent_id = :parent_id and c.ended_at is null and c.stopped_by is null
        -- one whose person let time run out ends by itself, and as what it is
        and c.before_timeout_status is null
        and ended.status in ('Failed', 'Stopped', 'TimedOut') and (parent.run_id = ended.run_id or parent.status = 'Completed')
        and not (c.kind = 'AgentRun' and exists (
            select from resolved_definition d where d.tenant_id = c.tenant_id and d.run_id = c.run_id
                and jsonb_array_length(d.body #> '{loop,specialists}') > 0))
    order by c.created_at, c.run_id limit :limit
    for update of c skip locked),
stopped as (
    update process p set
        stopped_by = format(case when child.is_parent then 'Orchestrator: its parent run %s was %s'
            else 'Orchestrator: the run %s above it was %s' end, child.ended_id, child.ended_status),
        signal_number = p.signal_number + 1, updated_at = t.now,
        status = case when child.is_new then 'Stopped' else p.status end,
        ended_at = case when child.is_new then t.now end,
        ready_at = case when child.is_new then null when p.worker_id is null then least(p.ready_at, t.now) else p.ready_at end
    from child cross join t
    where p.tenant_id = child.tenant_id and p.run_id = child.run_id
    returning p.run_id, child.ended_status)
select run_id, ended_status from stopped;

-- name: delegating_children
-- The other children that are to be asked: agent runs that have specialists.
select c.run_id, ended.status as ended_status
from process c join process parent on parent.tenant_id = c.tenant_id and parent.run_id = c.parent_id
    join process ended on ended.tenant_id = c.tenant_id and ended.run_id = :ended_id
    join resolved_definition d on d.tenant_id = c.tenant_id and d.run_id = c.run_id
where c.tenant_id = :tenant_id and c.parent_id = :parent_id and c.kind = 'AgentRun' and c.ended_at is null and c.stopped_by is null
    and c.before_timeout_status is null
    and ended.status in ('Failed', 'Stopped', 'TimedOut') and (parent.run_id = ended.run_id or parent.status = 'Completed')
    and jsonb_array_length(d.body #> '{loop,specialists}') > 0
order by c.created_at, c.run_id;

-- name: completed_below
-- The Completed runs below an ended one, each reached by way of Completed ones alone, that have children still to be asked: what is
-- below any other run is led to by that run's own end.
with recursive reached as (
    select c.run_id from process c where c.tenant_id = :tenant_id and c.parent_id = :ended_id and c.status = 'Completed'
    union all
    select c.run_id from reached r join process c on c.tenant_id = :tenant_id and c.parent_id = r.run_id
    where c.status = 'Completed')
select r.run_id from reached r
where exists (
    select from process c where c.tenant_id = :tenant_id and c.parent_id = r.run_id and c.ended_at is null and c.stopped_by is null)
limit :limit;

-- name: settle_below!
-- Once all below an ended run were asked, the sweep looks at it no more. Nothing is started below it from then on: a start holds its
-- parent until it is committed, and is refused below a run that has ended or was asked to stop.
with recursive reached as (
    select :ended_id::uuid as run_id
    union all
    select c.run_id from reached r join process c on c.tenant_id = :tenant_id and c.parent_id = r.run_id
    where c.status = 'Completed')
update process p set stops_below = false
where p.tenant_id = :tenant_id and p.run_id = :ended_id and p.stops_below and p.status in ('Failed', 'Stopped', 'TimedOut')
    and not exists (
        select from reached r join process c on c.tenant_id = :tenant_id and c.parent_id = r.run_id
        where c.ended_at is null and c.stopped_by is null);

-- name: ended_parents
-- Runs that ended other than Completed, may have started others, and are not known to have asked all of those to stop.
select tenant_id, run_id from process
where stops_below and status in ('Failed', 'Stopped', 'TimedOut')
limit :limit;

-- name: holder$
-- Which run asks a person this: the one at hand, or one below it.
with recursive below as (
    select p.run_id from process p where p.tenant_id = :tenant_id and p.run_id = :run_id
    union all
    select c.run_id from process c join below b on c.parent_id = b.run_id where c.tenant_id = :tenant_id)
select w.run_id from below b join pending w on w.tenant_id = :tenant_id and w.run_id = b.run_id and w.pending_id = :pending_id
limit 1;

-- name: waiting_below
-- What the runs below a run wait for, the longest first.
with recursive below as (
    select c.run_id from process c where c.tenant_id = :tenant_id and c.parent_id = :run_id
    union all
    select c.run_id from process c join below b on c.parent_id = b.run_id where c.tenant_id = :tenant_id)
select w.run_id, w.pending_id
from below b join pending w on w.tenant_id = :tenant_id and w.run_id = b.run_id
where num_nulls(w.outcome) = 1 and (w.expires_at is null or w.expires_at > folkmoot_now())
order by w.asked_at, w.pending_id limit :limit;

-- name: has_swarm$
-- Whether a run may have sub-runs at all.
select coalesce(jsonb_typeof(body -> 'swarm'), 'null') <> 'null' from resolved_definition
where tenant_id = :tenant_id and run_id = :run_id;

-- name: goes_on_below$
-- Whether anything that a run started, or what that started, has not ended.
with recursive below as (
    select c.run_id, c.ended_at from process c where c.tenant_id = :tenant_id and c.parent_id = :run_id
    union all
    select c.run_id, c.ended_at from process c join below b on c.parent_id = b.run_id where c.tenant_id = :tenant_id)
select exists (select from below where ended_at is null);
