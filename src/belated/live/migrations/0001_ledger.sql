-- {bytes} is the type of the 16 bytes of an id; {clustered} keeps a table in the order of its key.
-- Times are milliseconds since 1970, rewards are billionths. Decisions and outcomes are only ever appended.

CREATE TABLE experiments (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    settings TEXT NOT NULL,
    status TEXT NOT NULL,
    epoch BIGINT NOT NULL,  -- grows with each change of a status or an arm
    grain BIGINT NOT NULL,  -- the width of its buckets of time
    failure_after BIGINT,  -- the window after which silence is a failure, if it ever is
    created_at BIGINT NOT NULL
);

CREATE TABLE arms (
    experiment BIGINT NOT NULL REFERENCES experiments,
    arm BIGINT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    prior_a DOUBLE PRECISION NOT NULL,
    prior_b DOUBLE PRECISION NOT NULL,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (experiment, arm),
    UNIQUE (experiment, name)
);

CREATE TABLE decisions (
    id {bytes} NOT NULL PRIMARY KEY,
    experiment BIGINT NOT NULL,
    arm BIGINT NOT NULL,
    asked_at BIGINT NOT NULL,
    propensity DOUBLE PRECISION NOT NULL,
    unit TEXT
) {clustered};

CREATE INDEX decisions_by_time ON decisions (experiment, asked_at, arm);

-- Of sticky experiments: the one decision of each unit.
CREATE TABLE units (
    experiment BIGINT NOT NULL,
    unit TEXT NOT NULL,
    decision {bytes} NOT NULL,
    PRIMARY KEY (experiment, unit)
) {clustered};

-- The outcome of a decision is its highest revision; a reward of NULL takes it back.
CREATE TABLE outcomes (
    decision {bytes} NOT NULL,
    revision BIGINT NOT NULL,
    reward BIGINT,
    occurred_at BIGINT,
    received_at BIGINT NOT NULL,
    heard_at BIGINT,  -- of a correction: when the outcome that it corrects was received
    PRIMARY KEY (decision, revision)
) {clustered};

-- What follows are sums over the above, moved in the same transaction; `verify` folds them afresh.
CREATE TABLE totals (
    experiment BIGINT NOT NULL,
    arm BIGINT NOT NULL,
    asked BIGINT NOT NULL,
    told BIGINT NOT NULL,
    rewards BIGINT NOT NULL,
    PRIMARY KEY (experiment, arm)
) {clustered};

CREATE TABLE buckets (
    experiment BIGINT NOT NULL,
    bucket BIGINT NOT NULL,  -- of asked_at, in grains of the experiment
    arm BIGINT NOT NULL,
    asked BIGINT NOT NULL,
    told BIGINT NOT NULL,
    rewards BIGINT NOT NULL,
    PRIMARY KEY (experiment, bucket, arm)
) {clustered};
