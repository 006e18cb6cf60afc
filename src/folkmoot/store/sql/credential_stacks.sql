-- name: defaults^
-- The default of a namespace and that of the tenant, which is kept under the id of no namespace.
select (select d.definition_id from default_credential_stack d join namespace n using (tenant_id, namespace_id)
        where d.tenant_id = :tenant_id and n.name = :namespace) as of_namespace,
    (select definition_id from default_credential_stack
        where tenant_id = :tenant_id and namespace_id = '00000000-0000-0000-0000-000000000000') as of_tenant;

-- name: set_default!
insert into default_credential_stack (tenant_id, namespace_id, definition_id, updated_at)
values (:tenant_id, :namespace_id, :definition_id, folkmoot_now())
on conflict (tenant_id, namespace_id) do update set definition_id = excluded.definition_id, updated_at = excluded.updated_at;

-- name: clear_default!
delete from default_credential_stack where tenant_id = :tenant_id and namespace_id = :namespace_id;
