-- What the silence of experiments with a window is read from. Time is cut into blocks, as wide as the fewest grains that
-- make at most 50 of them a window; lags are cut into bins of the same width. A conversion is a reward above 0 that was
-- heard within the window.
CREATE TABLE blocks (
    experiment BIGINT NOT NULL,
    block BIGINT NOT NULL,  -- of asked_at
    arm BIGINT NOT NULL,
    asked BIGINT NOT NULL,
    told BIGINT NOT NULL,
    rewards BIGINT NOT NULL,
    converted BIGINT NOT NULL,
    PRIMARY KEY (experiment, block, arm)
) {clustered};

CREATE TABLE bins (
    experiment BIGINT NOT NULL,
    arm BIGINT NOT NULL,
    bin BIGINT NOT NULL,  -- of the lag
    converted BIGINT NOT NULL,
    PRIMARY KEY (experiment, arm, bin)
) {clustered};

-- The same conversions by the edge between two blocks from which on they count in the curve: that at which their bin is
-- over for all of their block. Of these, only the last few are read.
CREATE TABLE fresh (
    experiment BIGINT NOT NULL,
    edge BIGINT NOT NULL,
    arm BIGINT NOT NULL,
    bin BIGINT NOT NULL,
    converted BIGINT NOT NULL,
    PRIMARY KEY (experiment, edge, arm, bin)
) {clustered};

CREATE TEMPORARY TABLE told_so_far AS
SELECT d.experiment AS experiment, d.arm AS arm, d.asked_at / w.width AS block, o.reward AS reward,
    CASE WHEN o.reward > 0 AND COALESCE(o.heard_at, o.received_at) - d.asked_at < w.span
        THEN (COALESCE(o.heard_at, o.received_at) - d.asked_at) / w.width END AS bin
FROM decisions d JOIN (
    SELECT id, failure_after AS span, grain * ((failure_after + 50 * grain - 1) / (50 * grain)) AS width
    FROM experiments WHERE failure_after IS NOT NULL
) AS w ON w.id = d.experiment
LEFT JOIN outcomes o ON o.decision = d.id AND o.reward IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM outcomes later WHERE later.decision = d.id AND later.revision > o.revision);

INSERT INTO blocks (experiment, block, arm, asked, told, rewards, converted)
SELECT experiment, block, arm, COUNT(*), COUNT(reward), COALESCE(SUM(reward), 0), COUNT(bin)
FROM told_so_far GROUP BY experiment, block, arm;

INSERT INTO bins (experiment, arm, bin, converted)
SELECT experiment, arm, bin, COUNT(*) FROM told_so_far WHERE bin IS NOT NULL GROUP BY experiment, arm, bin;

INSERT INTO fresh (experiment, edge, arm, bin, converted)
SELECT experiment, block + bin + 2, arm, bin, COUNT(*) FROM told_so_far WHERE bin IS NOT NULL
GROUP BY experiment, block + bin + 2, arm, bin;

DROP TABLE told_so_far;
