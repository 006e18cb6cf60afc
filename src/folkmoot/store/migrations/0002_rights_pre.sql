-- Who may do what, who did what, and what is sealed.

-- In the order of what they may; domain/rights.py says what that is.
create type user_role as enum ('viewer', 'approver', 'operator', 'developer', 'admin', 'owner');

alter table app_user add column role user_role, add column created_by uuid, add column updated_at timestamptz, add column removed_at timestamptz;
-- Until now a key had every right in its tenant; users other than owners were made by nobody's command.
update app_user set role = case when is_owner then 'owner' else 'viewer' end::user_role, created_by = user_id, updated_at = created_at;
alter table app_user drop column is_owner, alter column role set not null, alter column created_by set not null, alter column updated_at set not null;
-- A name is free again once its user was removed; what the user did keeps the user's id.
alter table app_user drop constraint app_user_tenant_id_name_key;
create unique index app_user_name on app_user (tenant_id, name) where removed_at is null;

-- Scopes narrow a key to some of its user's rights; null: all that the user may.
alter table api_key add column scopes text[] check (cardinality(scopes) >= 1), add column created_by uuid;
update api_key set created_by = user_id;
alter table api_key alter column created_by set not null;
-- Who else vouches for the key: whoever made it for its user, and those on whom the key rested that it was made with.
alter table api_key add column rests_on uuid[] not null default '{}';

-- An id of version 7: what is made later sorts later.
create function folkmoot_new_id() returns uuid language sql volatile as $$
    select encode(set_bit(set_bit(overlay(
        uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch from folkmoot_now()) * 1000)::bigint) from 3) from 1 for 6
    ), 52, 1), 53, 1), 'hex')::uuid
$$;

-- Who did what: written in the transaction of the deed, and never rewritten. Names stay as they were then.
create table audit (
    tenant_id uuid not null references tenant,
    audit_id uuid not null default folkmoot_new_id(),
    at timestamptz not null,
    -- null: nobody did it but the clock
    user_id uuid check (user_id is not null or channel = 'clock'),
    user_name text not null,
    key_id uuid,
    channel text not null check (length(channel) between 1 and 40),
    action text not null check (length(action) between 1 and 80),
    subject_kind text not null check (length(subject_kind) between 1 and 80),
    subject_id uuid,
    detail jsonb not null default '{}',
    primary key (tenant_id, audit_id)
);
create index audit_by_date on audit (tenant_id, at desc, audit_id desc);
create index audit_by_user on audit (tenant_id, user_id, at desc, audit_id desc);
create index audit_by_subject on audit (tenant_id, subject_id, at desc, audit_id desc) where subject_id is not null;
create index audit_by_action on audit (tenant_id, action, at desc, audit_id desc);

-- A secret's value, sealed under the key that sealed_by names, for this very row.
create table secret (
    tenant_id uuid not null,
    secret_id uuid not null,
    namespace_id uuid not null,
    name text not null check (length(name) between 1 and 200),
    sealed bytea not null,
    sealed_by text not null,
    created_by uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (tenant_id, secret_id),
    unique (tenant_id, namespace_id, name),
    foreign key (tenant_id, namespace_id) references namespace
);

-- A known text under the key in use: whoever starts with another key cannot open it, and is refused. Of no tenant.
create table vault_check (
    is_only boolean primary key default true check (is_only),
    sealed bytea not null
);
