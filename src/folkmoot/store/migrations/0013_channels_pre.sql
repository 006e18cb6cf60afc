-- Channels are definitions; an agent says what its own runs are defined by; and addresses in the apps of channels belong to users.

alter type definition_kind add value 'Channel';

-- Whose an address is. One address is one user's, and a user has one in each app. Removing a user takes their addresses away.
create table user_identity (
    tenant_id uuid not null references tenant,
    user_id uuid not null,
    app text not null,
    address text not null check (length(address) between 1 and 320),
    created_by uuid not null,
    created_at timestamptz not null,
    primary key (tenant_id, app, address),
    unique (tenant_id, user_id, app),
    foreign key (tenant_id, user_id) references app_user
);

-- What agents say of their runs where they say nothing: so that an agent that is saved again as it is adds no version.
update definition_version v set body = v.body || jsonb_build_object('runs', '{
    "owner": null, "tool_whitelist": [], "specialists": [], "consent_rules": [], "maximum_iterations": 3,
    "budget": {"tokens": null, "money": null, "calls": null, "tool_calls": null, "working_time": null},
    "channel": null, "consent_time": "P3D", "owner_name": null
}'::jsonb)
from definition d
where d.tenant_id = v.tenant_id and d.definition_id = v.definition_id and d.kind = 'Agent' and v.body -> 'runs' is null;
