-- What is to be known of a model's call beside its reply: what it was for, how large its prompt was taken to be and from where on it
-- held the conversation itself; with whose key it was made, and what it cost (US dollars; null where no price is known).
alter table model_call add column purpose text not null default 'turn';
alter table model_call add column estimated_tokens integer;
alter table model_call add column covered_upto bigint not null default 0;
alter table model_call add column trimmed_upto bigint not null default 0;
alter table model_call add column is_own_license boolean not null default false;
alter table model_call add column cost numeric check (cost >= 0);

alter type append_model_call_begun add attribute purpose text;
alter type append_model_call_begun add attribute estimated_tokens integer;
alter type append_model_call_begun add attribute covered_upto bigint;
alter type append_model_call_begun add attribute trimmed_upto bigint;
alter type append_model_call_ended add attribute cost numeric;
