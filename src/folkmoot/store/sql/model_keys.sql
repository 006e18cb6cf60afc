-- name: insert^
-- Of several at once, one inserts; the others wait for its commit and insert nothing.
insert into model_key (tenant_id, model_key_id, name, provider, secret_id, base_url, model_name_overrides, is_own_license, priority,
                       created_by, created_at, updated_at)
values (:tenant_id, :model_key_id, :name, :provider, :secret_id, :base_url, :overrides, :is_own_license, :priority, :created_by,
        folkmoot_now(), folkmoot_now())
on conflict (tenant_id, name) do nothing returning model_key_id;

-- name: replace^
update model_key set name = :name, provider = :provider, secret_id = :secret_id, base_url = :base_url, model_name_overrides = :overrides,
    is_own_license = :is_own_license, priority = :priority, updated_at = folkmoot_now()
where tenant_id = :tenant_id and model_key_id = :model_key_id and not exists (
    select from model_key o where o.tenant_id = :tenant_id and o.name = :name and o.model_key_id <> :model_key_id)
returning model_key_id;

-- name: delete$
delete from model_key where tenant_id = :tenant_id and model_key_id = :model_key_id returning model_key_id;

-- name: find^
select m.*, n.name || '/' || s.name as secret_name
from model_key m left join secret s using (tenant_id, secret_id) left join namespace n using (tenant_id, namespace_id)
where m.tenant_id = :tenant_id and (m.model_key_id = :model_key_id::uuid or (:model_key_id::uuid is null and m.name = :name::text));

-- name: page
select m.*, n.name || '/' || s.name as secret_name
from model_key m left join secret s using (tenant_id, secret_id) left join namespace n using (tenant_id, namespace_id)
where m.tenant_id = :tenant_id and m.name > :after order by m.name limit :limit;
