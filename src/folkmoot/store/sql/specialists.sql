-- name: lock!
-- Whoever saves an agent with specialists looks at all agents of the tenant, and nobody changes theirs meanwhile. Until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('folkmoot.specialists ' || :tenant_id::text, 0));

-- name: links
-- The enabled versions of all agents, each once for every specialist that it has, and once with nulls where there is none.
select d.definition_id, n.name as namespace, d.name, v.number, (s ->> 'definition_id')::uuid as linked_id, (s ->> 'version')::integer as linked_version
from definition d join namespace n using (tenant_id, namespace_id)
join definition_version v on v.tenant_id = d.tenant_id and v.definition_id = d.definition_id and not v.is_disabled
left join lateral jsonb_array_elements(v.body -> 'runs' -> 'specialists') s on true
where d.tenant_id = :tenant_id and d.kind = 'Agent' and d.deleted_at is null
order by d.definition_id, v.number;
