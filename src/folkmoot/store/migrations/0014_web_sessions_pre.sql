-- Who is signed in on the server's pages. A session rests on a key and ends with it; of its token only the hash is kept.
create table web_session (
    tenant_id uuid not null,
    token_hash bytea not null check (length(token_hash) = 32),
    key_id uuid not null,
    user_id uuid not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (tenant_id, token_hash),
    foreign key (tenant_id, key_id) references api_key,
    foreign key (tenant_id, user_id) references app_user
);
-- a session is looked for before its tenant is known; no two are alike anywhere
create unique index web_session_token on web_session (token_hash);
create index web_session_old on web_session (expires_at);
