-- Routers are definitions; interactions have a type, and say which runs their participants may start.

alter type definition_kind add value 'Router';

-- An interaction's swarm was kept for later until now; it has a place of its own, its links as all others.
update definition_version set body = jsonb_set(body #- '{later,swarm}', '{swarm}', jsonb_build_object(
    'interactions', (
        select coalesce(jsonb_agg(jsonb_build_object('name', null, 'namespace', null, 'definition_id', link -> 'id',
            'version', nullif((link ->> 'version')::integer, 0)) order by place), '[]')
        from jsonb_array_elements(body #> '{later,swarm,interactions}') with ordinality as links (link, place)),
    'participants', coalesce(body #> '{later,swarm,participants}', '[]'),
    'max_depth', body #> '{later,swarm,maxDepth}',
    'max_concurrent', body #> '{later,swarm,maxConcurrent}',
    'max_total', body #> '{later,swarm,maxTotal}'))
where body #> '{later,swarm}' is not null;
