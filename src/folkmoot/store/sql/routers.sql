-- name: lock!
-- Whoever saves a router looks at all routers of the tenant, and nobody changes them meanwhile. Until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('folkmoot.routers ' || :tenant_id::text, 0));

-- name: links
-- The enabled versions of all routers, each once for every router that it may choose, and once with nulls where there is none.
select d.definition_id, n.name as namespace, d.name, v.number, (c -> 'router' ->> 'definition_id')::uuid as chosen_id,
    (c -> 'router' ->> 'version')::integer as chosen_version
from definition d join namespace n using (tenant_id, namespace_id)
join definition_version v on v.tenant_id = d.tenant_id and v.definition_id = d.definition_id and not v.is_disabled
left join lateral jsonb_array_elements(v.body -> 'candidates') c on jsonb_typeof(c -> 'router') = 'object'
where d.tenant_id = :tenant_id and d.kind = 'Router' and d.deleted_at is null
order by d.definition_id, v.number;
