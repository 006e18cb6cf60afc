-- name: parent^
-- The run that is to start another one, or to stop one, under its claim. Until the transaction ends nobody ends it, asks it to stop,
-- or takes the claim away. No row: the claim is no more.
select tree_root_id, swarm_root_id, depth, created_by, stopped_by, priority, claimed_at + (duration_auto_termination - execution_time) as deadline_at,
    folkmoot_now() as now
from process
where tenant_id = :tenant_id and run_id = :run_id and claim_number = :number and claim_id = :claim_id and status = 'Running' for share;

-- name: make!
insert into swarm (tenant_id, root_id, max_depth, max_concurrent, max_total)
values (:tenant_id, :root, :max_depth, :max_concurrent, :max_total) on conflict do nothing;

-- name: lock!
-- Whoever starts a sub-run of the tree counts after whoever was before has written. Until the transaction ends.
select from swarm where tenant_id = :tenant_id and root_id = :root for update;

-- name: those_there
select run_id from process where tenant_id = :tenant_id and run_id = any(:run_ids::uuid[]);

-- name: take_places$
-- Places for some more sub-runs, as far as the limits of the tree and those of its starter leave any: how many were taken.
with free as (
    select least(
        :wanted::int, least(s.max_total, :max_total::int) - s.started,
        least(s.max_concurrent, :max_concurrent::int) - (
            select count(*) from process p
            where p.tenant_id = :tenant_id and p.swarm_root_id = :root and p.parent_kind = 'Interaction' and p.ended_at is null)::int) as places
    from swarm s where s.tenant_id = :tenant_id and s.root_id = :root and :depth::int <= least(s.max_depth, :max_depth::int))
update swarm s set started = s.started + free.places from free
where s.tenant_id = :tenant_id and s.root_id = :root and free.places > 0
returning free.places;

-- name: counts^
select s.max_depth, s.max_concurrent, s.max_total, s.started, (
    select count(*) from process p
    where p.tenant_id = s.tenant_id and p.swarm_root_id = s.root_id and p.parent_kind = 'Interaction' and p.ended_at is null) as running
from swarm s where s.tenant_id = :tenant_id and s.root_id = :root;

-- name: statuses
select run_id, status from process
where tenant_id = :tenant_id and parent_id = :run_id and parent_kind in ('Interaction', 'AgentRun') order by created_at, run_id;

-- name: children
-- The sub-runs of these runs, in the order in which they were started.
select p.parent_id, p.run_id, p.definition_id, p.definition_version, d.name, p.status, p.started_by, p.created_at, p.started_at, p.ended_at
from process p join definition d on d.tenant_id = p.tenant_id and d.definition_id = p.definition_id
where p.tenant_id = :tenant_id and p.parent_id = any(:run_ids::uuid[]) and p.parent_kind = 'Interaction'
order by p.created_at, p.run_id;

-- name: results
-- What came of sub-runs of a run.
select p.run_id, d.name, p.status, p.output, p.failure_details
from process p join definition d on d.tenant_id = p.tenant_id and d.definition_id = p.definition_id
where p.tenant_id = :tenant_id and p.parent_id = :run_id and p.run_id = any(:sub_run_ids::uuid[]) and p.parent_kind = 'Interaction';

-- name: places
-- Where these runs stand in their swarms, and what each awaited last. Taken: the call that asked for it has its answer.
select p.run_id, p.swarm_root_id, p.depth, p.ended_at is not null as is_released, s.max_depth, s.max_concurrent, s.max_total,
    coalesce(s.started, 0) as started, (
        select count(*) from process q
        where q.tenant_id = p.tenant_id and q.swarm_root_id = p.swarm_root_id and q.parent_kind = 'Interaction' and q.ended_at is null) as running,
    a.await_id, a.sub_run_ids, a.is_all, a.participant, a.author_id, a.thread_id, a.started_at as awaited_at, coalesce(c.outcome = 'done', false) as is_taken
from process p
    left join swarm s on s.tenant_id = p.tenant_id and s.root_id = p.swarm_root_id
    left join lateral (
        select * from sub_run_await w where w.tenant_id = p.tenant_id and w.run_id = p.run_id order by w.started_at desc, w.await_id desc limit 1) a on true
    left join call c on c.tenant_id = p.tenant_id and c.run_id = p.run_id and c.call_id = a.await_id
where p.tenant_id = :tenant_id and p.run_id = any(:run_ids::uuid[]);
