-- With which keys models are called: the tenant's own, versioned stacks of them, what failed, and what rests.

alter type definition_kind add value 'CredentialStack';

-- Whether runs that ask for it may be paid for with the operator's own keys. No request changes it: see the walls.
alter table tenant add column allow_platform_fallback boolean not null default false;
update tenant set allow_platform_fallback = true where name = 'default';

-- A secret that is a key of a provider. `secret_id` null: the server at base_url needs none. It may name a secret that was deleted.
create table model_key (
    tenant_id uuid not null references tenant,
    model_key_id uuid not null,
    name text not null check (length(name) between 1 and 200),
    provider text not null,
    secret_id uuid,
    base_url text,
    model_name_overrides jsonb not null default '{}',
    is_own_license boolean not null default false,
    priority integer not null default 0,
    created_by uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, model_key_id),
    unique (tenant_id, name)
);

-- The stack of runs that name none, of a namespace or, under the id of no namespace (all zeros), of the tenant.
create table default_credential_stack (
    tenant_id uuid not null references tenant,
    namespace_id uuid not null,
    definition_id uuid not null,
    updated_at timestamptz not null,
    primary key (tenant_id, namespace_id),
    foreign key (tenant_id, definition_id) references definition
);

-- A key that failed, and until when no call is made with it. `key`: a secret's id, or the name of what has none. `model`: the one
-- model that it may not use ('' for all). `version` changes with the key's value: of another value this rest is none.
create table credential_rest (
    tenant_id uuid not null,
    key text not null,
    model text not null,
    version text not null,
    reason text not null,
    detail text not null,
    began_at timestamptz not null,
    until timestamptz not null,
    -- rests in a row for the same reason
    times integer not null,
    primary key (tenant_id, key, model)
);

-- Each rest's beginning, once, at the run whose call began it.
create table credential_failure (
    tenant_id uuid not null,
    run_id uuid not null,
    failure_id uuid not null default folkmoot_new_id(),
    key text not null,
    provider text not null,
    reason text not null,
    detail text not null,
    at timestamptz not null,
    retry_after_seconds integer not null,
    primary key (tenant_id, run_id, failure_id)
);

-- An interaction's stack was kept for later until now; it has a place of its own.
update definition_version set body = jsonb_set(body #- '{later,credentialStack}', '{credential_stack}', body #> '{later,credentialStack}')
where body #> '{later,credentialStack}' is not null;
