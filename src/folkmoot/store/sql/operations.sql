-- name: lock_connector^
-- Whoever holds this row writes down what its server offers; null if it was deleted.
select latest_version from definition where tenant_id = :tenant_id and definition_id = :connector_id and deleted_at is null for update;

-- name: compare
-- What is known of a connector's operations beside what is offered now; body only where the descriptor differs.
select o.operation_id, o.name, o.latest_version, o.gone_at is not null as is_gone, v.is_disabled, g.name is not null as is_offered,
    v.body->'descriptor' = g.descriptor as is_same, case when v.body->'descriptor' <> g.descriptor then v.body end as body
from external_operation o
join external_operation_version v on v.tenant_id = o.tenant_id and v.operation_id = o.operation_id and v.number = o.latest_version
left join unnest(:names::text[], :descriptors::jsonb[]) g(name, descriptor) on g.name = o.name
where o.tenant_id = :tenant_id and o.connector_id = :connector_id order by o.name;

-- name: insert_operations!
insert into external_operation (tenant_id, operation_id, connector_id, name, latest_version, created_at, updated_at)
select :tenant_id, g.operation_id, :connector_id, g.name, 1, folkmoot_now(), folkmoot_now()
from unnest(:ids::uuid[], :names::text[]) g(operation_id, name);

-- name: insert_versions!
insert into external_operation_version (tenant_id, operation_id, number, body, is_disabled, created_by, created_at)
select :tenant_id, g.operation_id, g.number, g.body, g.is_disabled, :created_by, folkmoot_now()
from unnest(:ids::uuid[], :numbers::int[], :bodies::jsonb[], :disabled::boolean[]) g(operation_id, number, body, is_disabled);

-- name: raise_latest!
update external_operation o set latest_version = g.number, updated_at = folkmoot_now()
from unnest(:ids::uuid[], :numbers::int[]) g(operation_id, number)
where o.tenant_id = :tenant_id and o.operation_id = g.operation_id;

-- name: mark_gone!
update external_operation set gone_at = folkmoot_now(), updated_at = folkmoot_now()
where tenant_id = :tenant_id and operation_id = any(:ids::uuid[]) and gone_at is null;

-- name: mark_back!
update external_operation set gone_at = null, updated_at = folkmoot_now()
where tenant_id = :tenant_id and operation_id = any(:ids::uuid[]) and gone_at is not null;

-- name: operation_by_id^
select o.* from external_operation o join definition d on d.tenant_id = o.tenant_id and d.definition_id = o.connector_id
where o.tenant_id = :tenant_id and o.operation_id = :operation_id and d.deleted_at is null;

-- name: operation_by_name^
select o.* from external_operation o where o.tenant_id = :tenant_id and o.connector_id = :connector_id and o.name = :name;

-- name: lock_operation^
select latest_version from external_operation where tenant_id = :tenant_id and operation_id = :operation_id for update;

-- name: version^
-- `is_current`: the latest version holds what the server offers.
select v.body, v.is_disabled, v.created_at, v.body->'descriptor' = l.body->'descriptor' as is_current
from external_operation_version v
join external_operation o on o.tenant_id = v.tenant_id and o.operation_id = v.operation_id
join external_operation_version l on l.tenant_id = o.tenant_id and l.operation_id = o.operation_id and l.number = o.latest_version
where v.tenant_id = :tenant_id and v.operation_id = :operation_id and v.number = :number;

-- name: latest_enabled^
select v.body, v.is_disabled, v.created_at, v.body->'descriptor' = l.body->'descriptor' as is_current
from external_operation_version v
join external_operation o on o.tenant_id = v.tenant_id and o.operation_id = v.operation_id
join external_operation_version l on l.tenant_id = o.tenant_id and l.operation_id = o.operation_id and l.number = o.latest_version
where v.tenant_id = :tenant_id and v.operation_id = :operation_id and not v.is_disabled order by v.number desc limit 1;

-- name: versions
select v.body, v.is_disabled, v.created_at, v.body->'descriptor' = l.body->'descriptor' as is_current
from external_operation_version v
join external_operation o on o.tenant_id = v.tenant_id and o.operation_id = v.operation_id
join external_operation_version l on l.tenant_id = o.tenant_id and l.operation_id = o.operation_id and l.number = o.latest_version
where v.tenant_id = :tenant_id and v.operation_id = :operation_id and v.number < :before order by v.number desc limit :limit;

-- name: page
-- A connector's operations by name, each with its newest version; those that are gone too.
select o.*, v.body, v.is_disabled, v.created_at as version_created_at
from external_operation o
join external_operation_version v on v.tenant_id = o.tenant_id and v.operation_id = o.operation_id and v.number = o.latest_version
where o.tenant_id = :tenant_id and o.connector_id = :connector_id and o.name > :after
    and (:text::text is null or position(lower(:text) in lower(o.name)) > 0) and (:name::text is null or o.name = :name)
order by o.name limit :limit;

-- name: set_disabled$
update external_operation_version set is_disabled = :is_disabled
where tenant_id = :tenant_id and operation_id = :operation_id and number = :number returning true;

-- name: touch!
update external_operation set updated_at = folkmoot_now() where tenant_id = :tenant_id and operation_id = :operation_id;

-- name: keep_document!
insert into connector_document (tenant_id, hash, body, created_at)
values (:tenant_id, :hash, :body, folkmoot_now()) on conflict (tenant_id, hash) do nothing;

-- name: document$
select body from connector_document where tenant_id = :tenant_id and hash = :hash;
