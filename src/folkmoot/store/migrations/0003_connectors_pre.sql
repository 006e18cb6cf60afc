-- Connectors are definitions; what their servers offer is kept below them, version by version.

alter type definition_kind add value 'McpConnector';
alter type definition_kind add value 'OpenApiConnector';

create table external_operation (
    tenant_id uuid not null,
    operation_id uuid not null,
    connector_id uuid not null,
    name text not null check (length(name) between 1 and 500),
    latest_version integer not null check (latest_version >= 1),
    created_at timestamptz not null,
    updated_at timestamptz not null,
    -- when the server was found to offer it no more
    gone_at timestamptz,
    primary key (tenant_id, operation_id),
    unique (tenant_id, connector_id, name),
    foreign key (tenant_id, connector_id) references definition
);

-- A version is never rewritten; only is_disabled changes. The latest one holds what the server offers now.
create table external_operation_version (
    tenant_id uuid not null,
    operation_id uuid not null,
    number integer not null check (number >= 1),
    body jsonb not null,
    is_disabled boolean not null default false,
    created_by uuid not null,
    created_at timestamptz not null,
    primary key (tenant_id, operation_id, number),
    foreign key (tenant_id, operation_id) references external_operation
);

-- Uploaded documents, each once, apart from the versions that name them by their hash: lists need not carry megabytes.
create table connector_document (
    tenant_id uuid not null references tenant,
    hash bytea not null check (length(hash) = 32),
    body bytea not null,
    created_at timestamptz not null,
    primary key (tenant_id, hash)
);
