-- Who may use the service. Of a key only a digest is kept.
CREATE TABLE keys (
    id BIGINT NOT NULL PRIMARY KEY,
    digest {bytes} NOT NULL UNIQUE,
    role TEXT NOT NULL,
    experiment TEXT,  -- the name of the one experiment it is for, if it is for one
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
