-- What is to be known of a model's call beside its reply: what it was for, how large its prompt was guessed to be (and, corrected by
-- what the provider had counted before, taken to be), up to where old tool results were trimmed; with whose key it was made, and what
-- it cost (US dollars; null where no price is known).
alter table model_call add column purpose text not null default 'turn';
alter table model_call add column guessed_tokens integer;
alter table model_call add column estimated_tokens integer;
alter table model_call add column trimmed_upto bigint not null default 0;
alter table model_call add column is_own_license boolean not null default false;
alter table model_call add column cost numeric check (cost >= 0);

alter type append_model_call_begun add attribute purpose text;
alter type append_model_call_begun add attribute guessed_tokens integer;
alter type append_model_call_begun add attribute estimated_tokens integer;
alter type append_model_call_begun add attribute trimmed_upto bigint;
alter type append_model_call_ended add attribute cost numeric;
