-- name: insert_definition^
-- Of several at once, one inserts; the others wait for its commit and insert nothing.
insert into definition (tenant_id, definition_id, kind, namespace_id, name, latest_version, created_by, created_at, updated_at)
values (:tenant_id, :definition_id, :kind, :namespace_id, :name, 1, :created_by, folkmoot_now(), folkmoot_now())
on conflict (tenant_id, kind, namespace_id, name) where deleted_at is null do nothing
returning definition_id;

-- name: lock_definition^
-- Whoever holds this row adds the next version. An interaction's type is that of its first one, in which RoundRobin may go unsaid.
select d.definition_id, d.latest_version, v.body = :body::jsonb as is_same,
    d.kind = 'Interaction' and coalesce(v.body ->> 'type', 'RoundRobin') <> coalesce(:body::jsonb ->> 'type', 'RoundRobin') as is_other_type
from definition d join definition_version v on v.tenant_id = d.tenant_id and v.definition_id = d.definition_id and v.number = d.latest_version
where d.tenant_id = :tenant_id and d.kind = :kind and d.namespace_id = :namespace_id and d.name = :name and d.deleted_at is null
for update of d;

-- name: insert_version!
insert into definition_version (tenant_id, definition_id, number, body, created_by, created_at)
values (:tenant_id, :definition_id, :number, :body, :created_by, folkmoot_now());

-- name: raise_latest!
update definition set latest_version = :number, updated_at = folkmoot_now() where tenant_id = :tenant_id and definition_id = :definition_id;

-- name: definition_by_id^
select d.*, n.name as namespace from definition d join namespace n using (tenant_id, namespace_id)
where d.tenant_id = :tenant_id and d.definition_id = :definition_id and d.kind = :kind and d.deleted_at is null;

-- name: definition_by_name^
select d.*, n.name as namespace from definition d join namespace n using (tenant_id, namespace_id)
where d.tenant_id = :tenant_id and d.kind = :kind and n.name = :namespace and d.name = :name and d.deleted_at is null;

-- name: version^
select number, body, is_disabled, created_at from definition_version
where tenant_id = :tenant_id and definition_id = :definition_id and number = :number;

-- name: latest_enabled^
select number, body, is_disabled, created_at from definition_version
where tenant_id = :tenant_id and definition_id = :definition_id and not is_disabled order by number desc limit 1;

-- name: versions
select number, body, is_disabled, created_at from definition_version
where tenant_id = :tenant_id and definition_id = :definition_id and number < :before order by number desc limit :limit;

-- name: page
-- Definitions of a kind in a namespace by name, each with its newest version.
select d.*, n.name as namespace, v.number, v.body, v.is_disabled, v.created_at as version_created_at
from definition d join namespace n using (tenant_id, namespace_id)
join definition_version v on v.tenant_id = d.tenant_id and v.definition_id = d.definition_id and v.number = d.latest_version
where d.tenant_id = :tenant_id and d.kind = :kind and d.namespace_id = :namespace_id and d.deleted_at is null and d.name > :after
order by d.name limit :limit;

-- name: enabled_names
select d.definition_id, n.name as namespace, d.name from definition d join namespace n using (tenant_id, namespace_id)
where d.tenant_id = :tenant_id and d.kind = :kind and d.deleted_at is null and exists (
    select from definition_version v where v.tenant_id = d.tenant_id and v.definition_id = d.definition_id and not v.is_disabled)
order by n.name, d.name limit :limit;

-- name: set_disabled^
update definition_version set is_disabled = :is_disabled
where tenant_id = :tenant_id and definition_id = :definition_id and number = :number
returning number, body, is_disabled, created_at;

-- name: touch!
update definition set updated_at = folkmoot_now() where tenant_id = :tenant_id and definition_id = :definition_id;

-- name: delete$
update definition set deleted_at = folkmoot_now(), updated_at = folkmoot_now()
where tenant_id = :tenant_id and definition_id = :definition_id and kind = :kind and deleted_at is null returning true;
