/*
 * The yardstick: Thompson sampling on Bernoulli arms whose rewards arrive a fixed number of rounds late.
 *
 * What a competent C programmer writes without tricks: one thread, one draw after the other, and nothing kept between
 * draws but the spare normal. The arms' means are evenly spaced on [0.25, 0.75].
 *
 *     thompson <arms> <rounds> <delay> <replications> <seed>
 *
 * prints: nanoseconds per round, mean regret, standard error of the mean regret.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- Random numbers ---------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t s[4];     /* the state of xoshiro256++ */
    double spare;      /* the second normal of the last pair */
    int has_spare;
} Random;

static void seed_random(Random *random, uint64_t seed)
{
    /* splitmix64 fills the state, as the authors of xoshiro recommend */
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        random->s[i] = z ^ (z >> 31);
    }
    random->has_spare = 0;
}

static inline uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* xoshiro256++ (Blackman and Vigna) */
static inline uint64_t next(Random *random)
{
    uint64_t *s = random->s;
    uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* uniform on [0, 1) */
static inline double uniform(Random *random)
{
    return (next(random) >> 11) * 0x1p-53;
}

/* standard normal, by Marsaglia's polar method: they come in pairs */
static inline double normal(Random *random)
{
    if (random->has_spare) {
        random->has_spare = 0;
        return random->spare;
    }
    double x, y, r2;
    do {
        x = 2 * uniform(random) - 1;
        y = 2 * uniform(random) - 1;
        r2 = x * x + y * y;
    } while (r2 >= 1 || r2 == 0);
    double scale = sqrt(-2 * log(r2) / r2);
    random->spare = y * scale;
    random->has_spare = 1;
    return x * scale;
}

/* Gamma(shape, 1) for shape >= 1 (Marsaglia and Tsang 2000) */
static inline double gamma_draw(Random *random, double shape)
{
    double d = shape - 1.0 / 3;
    double c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(random);
        double v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        double u = uniform(random);
        if (u < 1 - 0.0331 * (x * x) * (x * x))
            return d * v;
        if (log(u) < 0.5 * x * x + d * (1 - v + log(v)))
            return d * v;
    }
}

static inline double beta_draw(Random *random, double a, double b)
{
    double x = gamma_draw(random, a);
    double y = gamma_draw(random, b);
    return x / (x + y);
}

/* ---- Thompson sampling ------------------------------------------------------------------------------------------- */

typedef struct {
    int arms, rounds, delay;
    double *means;
    double *successes, *failures;    /* revealed so far, per arm */
    int *pulled;                     /* the arm of each round */
    double *reward;                  /* the reward of each round, whether revealed or not */
} Bandit;

static int choose(const Bandit *bandit, Random *random)
{
    int best = 0;
    double highest = -1;
    for (int arm = 0; arm < bandit->arms; arm++) {
        double theta = beta_draw(random, bandit->successes[arm] + 1, bandit->failures[arm] + 1);
        if (theta > highest) {
            highest = theta;
            best = arm;
        }
    }
    return best;
}

/* One replication: returns its pseudo-regret. */
static double replicate(Bandit *bandit, Random *random)
{
    double regret = 0;
    for (int arm = 0; arm < bandit->arms; arm++)
        bandit->successes[arm] = bandit->failures[arm] = 0;
    for (int t = 0; t < bandit->rounds; t++) {
        int arm = choose(bandit, random);
        regret += bandit->means[bandit->arms - 1] - bandit->means[arm];
        bandit->pulled[t] = arm;
        bandit->reward[t] = uniform(random) < bandit->means[arm];

        int due = t - bandit->delay;    /* the round whose reward is revealed at the end of this one */
        if (due >= 0) {
            bandit->successes[bandit->pulled[due]] += bandit->reward[due];
            bandit->failures[bandit->pulled[due]] += 1 - bandit->reward[due];
        }
    }
    return regret;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fprintf(stderr, "thompson: out of memory\n");
        exit(1);
    }
    return memory;
}

int main(int argc, char **argv)
{
    if (argc != 6 || atoi(argv[1]) < 2 || atoi(argv[2]) < 1 || atoi(argv[3]) < 0 || atoi(argv[4]) < 2) {
        fprintf(stderr, "usage: thompson <arms, from 2> <rounds> <delay> <replications, from 2> <seed>\n");
        return 2;
    }
    Bandit bandit = {.arms = atoi(argv[1]), .rounds = atoi(argv[2]), .delay = atoi(argv[3])};
    int replications = atoi(argv[4]);
    Random random;
    seed_random(&random, strtoull(argv[5], NULL, 10));

    bandit.means = allocate(bandit.arms, sizeof(double));
    bandit.successes = allocate(bandit.arms, sizeof(double));
    bandit.failures = allocate(bandit.arms, sizeof(double));
    bandit.pulled = allocate(bandit.rounds, sizeof(int));
    bandit.reward = allocate(bandit.rounds, sizeof(double));
    for (int arm = 0; arm < bandit.arms; arm++)
        bandit.means[arm] = 0.25 + 0.5 * arm / (bandit.arms - 1);

    double *regret = allocate(replications, sizeof(double));
    double began = seconds();
    for (int i = 0; i < replications; i++)
        regret[i] = replicate(&bandit, &random);
    double elapsed = seconds() - began;

    double mean = 0, squares = 0;
    for (int i = 0; i < replications; i++)
        mean += regret[i] / replications;
    for (int i = 0; i < replications; i++)
        squares += (regret[i] - mean) * (regret[i] - mean);
    double error = sqrt(squares / (replications - 1) / replications);
    printf("%.3f %.6f %.6f\n", elapsed / replications / bandit.rounds * 1e9, mean, error);
    return 0;
}
