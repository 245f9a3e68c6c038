-- How many outcomes came how late: what the forecast of `summary` is made from without reading every row.
CREATE TABLE lags (
    experiment BIGINT NOT NULL,
    arm BIGINT NOT NULL,
    lag BIGINT NOT NULL,  -- the bucket in which the outcome was heard less that of asked_at
    told BIGINT NOT NULL,
    PRIMARY KEY (experiment, arm, lag)
) {clustered};

INSERT INTO lags (experiment, arm, lag, told)
SELECT d.experiment, d.arm, COALESCE(o.heard_at, o.received_at) / e.grain - d.asked_at / e.grain AS lag, COUNT(*)
FROM outcomes o JOIN decisions d ON d.id = o.decision JOIN experiments e ON e.id = d.experiment
WHERE o.reward IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM outcomes later WHERE later.decision = o.decision AND later.revision > o.revision)
GROUP BY d.experiment, d.arm, COALESCE(o.heard_at, o.received_at) / e.grain - d.asked_at / e.grain;
