-- name: sums
-- What calls used, in groups by the keys that are wanted, in their order; those after a group, if one is given. It is planned anew for
-- the values at hand: what is not asked for falls away, joins with it. Calls that were never made count nowhere.
with call as (
    select
        case when :by_day::boolean then m.day end as day,
        case when :by_namespace::boolean then p.namespace_id end as namespace_id,
        case when :by_interaction::boolean then p.definition_id end as definition_id,
        case when :by_root::boolean then p.tree_root_id end as root_id,
        case when :by_process::boolean then m.run_id end as run_id,
        case when :by_agent::boolean then m.participant end as participant,
        case when :by_model::boolean then m.provider end as provider,
        case when :by_model::boolean then m.model end as model,
        case when :by_credential::boolean then coalesce(m.credential, '') end as credential,
        m.is_estimated, m.error_class, m.cost, m.input_tokens, m.cached_input_tokens, m.cache_write_tokens, m.output_tokens,
        m.reasoning_tokens
    from model_call m left join process p on p.tenant_id = m.tenant_id and p.run_id = m.run_id
    where m.tenant_id = :tenant_id and m.voided_at is null and (m.error_class is null or m.error_class <> all(:not_made::text[]))
        and (:since::timestamptz is null or m.started_at >= :since)
        and (:before::timestamptz is null or m.started_at < :before)
        and (:run_id::uuid is null or m.run_id = :run_id)
        and (:root::uuid is null or p.tree_root_id = :root)
        and (:below::uuid is null or m.run_id = any(array(
            with recursive below as (
                select q.run_id from process q where q.tenant_id = :tenant_id and q.run_id = :below::uuid
                union all
                select c.run_id from below b join process c on c.tenant_id = :tenant_id and c.parent_id = b.run_id)
            select b.run_id from below b)))
        and (:namespace_id::uuid is null or p.namespace_id = :namespace_id)
        and (:definition_id::uuid is null or p.definition_id = :definition_id)
        and (:agent::text is null or m.participant = :agent)
        and (:provider::text is null or m.provider = :provider)
        and (:model::text is null or m.model = :model)
        and (:credential::text is null or m.credential = :credential)),
part as (
    select day, namespace_id, definition_id, root_id, run_id, participant, provider, model, credential,
        count(*) as calls,
        count(*) filter (where is_estimated) as estimated_calls,
        count(error_class) as failed_calls,
        count(input_tokens) - count(cost) as unpriced_calls,
        coalesce(sum(input_tokens), 0) as input, coalesce(sum(cached_input_tokens), 0) as cached_input,
        coalesce(sum(cache_write_tokens), 0) as cache_write, coalesce(sum(output_tokens), 0) as output,
        coalesce(sum(reasoning_tokens), 0) as reasoning, sum(cost) as cost
    from call
    where not :has_after::boolean or (
            coalesce(day, '-infinity'::date), coalesce(namespace_id, '00000000-0000-0000-0000-000000000000'), coalesce(definition_id, '00000000-0000-0000-0000-000000000000'),
            coalesce(root_id, '00000000-0000-0000-0000-000000000000'), coalesce(run_id, '00000000-0000-0000-0000-000000000000'), coalesce(participant, ''), coalesce(provider, ''),
            coalesce(model, ''), coalesce(credential, '')) > (
            coalesce(:after_day::date, '-infinity'::date), coalesce(:after_namespace::uuid, '00000000-0000-0000-0000-000000000000'),
            coalesce(:after_definition::uuid, '00000000-0000-0000-0000-000000000000'), coalesce(:after_root::uuid, '00000000-0000-0000-0000-000000000000'),
            coalesce(:after_run::uuid, '00000000-0000-0000-0000-000000000000'), coalesce(:after_agent::text, ''), coalesce(:after_provider::text, ''),
            coalesce(:after_model::text, ''), coalesce(:after_credential::text, ''))
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9 order by 1, 2, 3, 4, 5, 6, 7, 8, 9 limit :limit)
select part.*, n.name as namespace, d.name as interaction from part
left join namespace n on n.tenant_id = :tenant_id and n.namespace_id = part.namespace_id
left join definition d on d.tenant_id = :tenant_id and d.definition_id = part.definition_id
order by 1, 2, 3, 4, 5, 6, 7, 8, 9;

-- name: calls
-- A page of a run's calls, the first ones first.
select model_call_id, turn_id, started_at, ended_at, participant, provider, model, purpose, credential, is_own_license, service_tier,
    usage, error_class, cost
from model_call
where tenant_id = :tenant_id and run_id = :run_id and voided_at is null and (error_class is null or error_class <> all(:not_made::text[]))
    and (:after_at::timestamptz is null or (started_at, model_call_id) > (:after_at, :after_id))
order by started_at, model_call_id limit :limit;
