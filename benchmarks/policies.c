/*
 * The yardstick of the other policies: each one's formula, evaluated for every arm in every round.
 *
 * What a competent C programmer writes without tricks: one thread, what does not depend on the arm taken out of the
 * loop, and no index kept from one round to the next. The arms are Bernoulli, with means evenly spaced on
 * [0.25, 0.75]; rewards arrive a fixed number of rounds late, or a geometric number of that mean.
 *
 *     policies <policy> <arms> <rounds> <delay> <fixed | geometric> <replications> <seed>
 *
 * prints: nanoseconds per round, mean regret, standard error of the mean regret.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Random numbers: xoshiro256++ (Blackman and Vigna), seeded by splitmix64 ------------------------------------- */

typedef struct {
    uint64_t s[4];
} Random;

static void seed_random(Random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        random->s[i] = z ^ (z >> 31);
    }
}

static inline uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

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

/* ---- What the policies share ------------------------------------------------------------------------------------- */

typedef struct {
    int arms, rounds;
    double *total, *seen, *pulls;    /* per arm: sum and number of the rewards revealed, and pulls */
    double *index;                   /* per arm: room for choose */
    char *alive, *filling;           /* elimination: the arms left; phased: those of this phase that miss rewards */
    int last, phase;                 /* the arm pulled last; the phase */
    double *pending, p;              /* ud-ucb: per arm, the pulls that have not had the time; the delay's parameter */
    int *head, *tail, *following;    /* qpm-d: per arm, a queue of the rewards that its base has not seen */
    double *queued;
    int wanted, inner, stored;       /* qpm-d: what the base wants, in which round of its own; rewards stored */
} Policy;

/* the arm of the largest index, ties broken at random */
static int largest(const Policy *policy, Random *random)
{
    int best = 0, ties = 1;
    for (int arm = 1; arm < policy->arms; arm++) {
        if (policy->index[arm] > policy->index[best]) {
            best = arm;
            ties = 1;
        } else if (policy->index[arm] == policy->index[best]) {
            ties++;
        }
    }
    if (ties == 1)
        return best;
    int pick = uniform(random) * ties;
    for (int arm = best; arm < policy->arms; arm++)
        if (policy->index[arm] == policy->index[best] && pick-- == 0)
            return arm;
    return best;
}

/* ---- No policy: the first arm, and nothing is learned ------------------------------------------------------------- */

static int choose_idle(Policy *policy, int t, Random *random)
{
    (void)policy, (void)t, (void)random;
    return 0;
}

static void learn_idle(Policy *policy, int arm, double reward, Random *random)
{
    (void)random;
    policy->total[arm] += reward;    /* so that the calendar is not idle too */
}

/* ---- UCB1 -------------------------------------------------------------------------------------------------------- */

static int choose_ucb1(Policy *policy, int t, Random *random)
{
    double explore = 2 * log(t);
    for (int arm = 0; arm < policy->arms; arm++) {
        double n = policy->seen[arm];
        policy->index[arm] = n > 0 ? policy->total[arm] / n + sqrt(explore / n) : INFINITY;
    }
    return largest(policy, random);
}

static void learn_ucb1(Policy *policy, int arm, double reward, Random *random)
{
    (void)random;
    policy->total[arm] += reward;
    policy->seen[arm] += 1;
}

/* ---- Successive elimination -------------------------------------------------------------------------------------- */

/* drop every arm whose upper bound is below another's lower bound */
static void eliminate(Policy *policy)
{
    double highest = -INFINITY;
    for (int arm = 0; arm < policy->arms; arm++) {
        if (policy->alive[arm]) {
            double n = policy->seen[arm] > 1 ? policy->seen[arm] : 1;
            double lower = policy->total[arm] / n - sqrt(2 / n);
            if (lower > highest)
                highest = lower;
        }
    }
    for (int arm = 0; arm < policy->arms; arm++) {
        if (policy->alive[arm]) {
            double n = policy->seen[arm] > 1 ? policy->seen[arm] : 1;
            if (policy->total[arm] / n + sqrt(2 / n) < highest)
                policy->alive[arm] = 0;
        }
    }
}

/* the next arm of a set after the one pulled last, or -1 */
static int following_arm(const Policy *policy, const char *set)
{
    for (int arm = policy->last + 1; arm < policy->arms; arm++)
        if (set[arm])
            return arm;
    return -1;
}

static int choose_elimination(Policy *policy, int t, Random *random)
{
    (void)t, (void)random;
    int arm = following_arm(policy, policy->alive);
    if (arm < 0) {    /* the sweep is over */
        eliminate(policy);
        policy->last = -1;
        arm = following_arm(policy, policy->alive);
    }
    return policy->last = arm;
}

/* ---- Phased elimination: in phase l, until each arm has 2^l rewards ---------------------------------------------- */

static int choose_phased(Policy *policy, int t, Random *random)
{
    (void)t, (void)random;
    int arm = following_arm(policy, policy->filling);
    if (arm < 0) {    /* the sweep is over: the next is of those that still miss rewards */
        for (int other = 0; other < policy->arms; other++)
            policy->filling[other] = policy->filling[other] && policy->seen[other] < ldexp(1, policy->phase);
        policy->last = -1;
        arm = following_arm(policy, policy->filling);
    }
    if (arm < 0) {    /* the phase is over */
        eliminate(policy);
        memcpy(policy->filling, policy->alive, policy->arms);
        policy->phase++;
        arm = following_arm(policy, policy->filling);
    }
    return policy->last = arm;
}

/* ---- PatientBandits, with alpha = 1/2 ---------------------------------------------------------------------------- */

static int choose_patient(Policy *policy, int t, Random *random)
{
    const double alpha = 0.5;
    double explore = 2 * (log(2.0 * policy->arms) + 3 * log(policy->rounds));
    if (t < policy->arms) {
        policy->pulls[t] += 1;
        return t;
    }
    for (int arm = 0; arm < policy->arms; arm++) {
        double m = policy->pulls[arm];
        policy->index[arm] = policy->total[arm] / m + sqrt(explore / m) + 2 * pow(m, -alpha);
    }
    int arm = largest(policy, random);
    policy->pulls[arm] += 1;
    return arm;
}

/* ---- UD-UCB, for geometric delays -------------------------------------------------------------------------------- */

static int choose_ud_ucb(Policy *policy, int t, Random *random)
{
    double explore = log(t);
    for (int arm = 0; arm < policy->arms; arm++) {
        double trials = policy->pulls[arm] - policy->pending[arm];
        if (trials > 0)
            policy->index[arm] = policy->total[arm] / trials
                + sqrt(policy->pulls[arm] / trials) * sqrt(explore / (2 * trials));
        else
            policy->index[arm] = INFINITY;
    }
    int arm = largest(policy, random);
    for (int other = 0; other < policy->arms; other++)
        policy->pending[other] *= 1 - policy->p;
    policy->pulls[arm] += 1;
    policy->pending[arm] += 1;
    return arm;
}

/* ---- QPM-D around UCB1 ------------------------------------------------------------------------------------------- */

static int choose_qpm_d(Policy *policy, int t, Random *random)
{
    if (t == 1) {
        policy->inner = 1;
        policy->wanted = choose_ucb1(policy, 1, random);
    }
    return policy->wanted;
}

/* while what the base wants is in store, the base goes on by itself */
static void learn_qpm_d(Policy *policy, int arm, double reward, Random *random)
{
    int slot = policy->stored++;
    policy->queued[slot] = reward;
    policy->following[slot] = -1;
    if (policy->head[arm] < 0)
        policy->head[arm] = slot;
    else
        policy->following[policy->tail[arm]] = slot;
    policy->tail[arm] = slot;
    while (policy->head[policy->wanted] >= 0 && policy->inner < policy->rounds) {
        int first = policy->head[policy->wanted];
        policy->head[policy->wanted] = policy->following[first];
        learn_ucb1(policy, policy->wanted, policy->queued[first], random);
        policy->inner++;
        policy->wanted = choose_ucb1(policy, policy->inner, random);
    }
}

/* ---- The world --------------------------------------------------------------------------------------------------- */

typedef struct {
    int delay, geometric;
    double *means;
    int *pulled;             /* the arm of each round */
    double *reward;          /* the reward of each round, whether revealed or not */
    int *first, *following;  /* geometric: the rounds revealed in a round, as a chain; 0 is its end */
} World;

typedef int Choose(Policy *policy, int t, Random *random);
typedef void Learn(Policy *policy, int arm, double reward, Random *random);

/* One replication, inlined for each policy: returns its pseudo-regret. */
static inline __attribute__((always_inline)) double replicate(
    World *world, Policy *policy, Random *random, Choose *choose, Learn *learn)
{
    double regret = 0;
    for (int t = 1; t <= policy->rounds; t++) {
        int arm = choose(policy, t, random);
        regret += world->means[policy->arms - 1] - world->means[arm];
        world->pulled[t] = arm;
        world->reward[t] = uniform(random) < world->means[arm];
        if (!world->geometric) {
            int due = t - world->delay;    /* the round whose reward is revealed at the end of this one */
            if (due >= 1)
                learn(policy, world->pulled[due], world->reward[due], random);
            continue;
        }
        double late = t + ceil(log1p(-uniform(random)) / log1p(-policy->p));
        if (late <= policy->rounds) {
            world->following[t] = world->first[(int)late];
            world->first[(int)late] = t;
        }
        for (int due = world->first[t]; due > 0; due = world->following[due])
            learn(policy, world->pulled[due], world->reward[due], random);
    }
    return regret;
}

/* as at the start of a replication */
static void clear(Policy *policy, World *world)
{
    for (int arm = 0; arm < policy->arms; arm++) {
        policy->total[arm] = policy->seen[arm] = policy->pulls[arm] = policy->pending[arm] = 0;
        policy->alive[arm] = policy->filling[arm] = 1;
        policy->head[arm] = -1;
    }
    policy->last = -1;
    policy->phase = policy->stored = 0;
    memset(world->first, 0, (policy->rounds + 1) * sizeof(int));
}

static double replicate_named(const char *name, World *world, Policy *policy, Random *random)
{
    clear(policy, world);
    if (!strcmp(name, "idle"))
        return replicate(world, policy, random, choose_idle, learn_idle);
    if (!strcmp(name, "ucb1"))
        return replicate(world, policy, random, choose_ucb1, learn_ucb1);
    if (!strcmp(name, "elimination"))
        return replicate(world, policy, random, choose_elimination, learn_ucb1);
    if (!strcmp(name, "phased"))
        return replicate(world, policy, random, choose_phased, learn_ucb1);
    if (!strcmp(name, "patient"))
        return replicate(world, policy, random, choose_patient, learn_ucb1);
    if (!strcmp(name, "ud-ucb"))
        return replicate(world, policy, random, choose_ud_ucb, learn_ucb1);
    if (!strcmp(name, "qpm-d"))
        return replicate(world, policy, random, choose_qpm_d, learn_qpm_d);
    fprintf(stderr, "policies: no policy %s\n", name);
    exit(2);
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
        fprintf(stderr, "policies: out of memory\n");
        exit(1);
    }
    return memory;
}

static Policy new_policy(int arms, int rounds, double p)
{
    Policy policy = {.arms = arms, .rounds = rounds, .p = p};
    double **numbers[] = {&policy.total, &policy.seen, &policy.pulls, &policy.index, &policy.pending};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = allocate(arms, sizeof(double));
    policy.alive = allocate(arms, 1);
    policy.filling = allocate(arms, 1);
    policy.head = allocate(arms, sizeof(int));
    policy.tail = allocate(arms, sizeof(int));
    policy.following = allocate(rounds, sizeof(int));
    policy.queued = allocate(rounds, sizeof(double));
    return policy;
}

static World new_world(int arms, int rounds, int delay, int geometric)
{
    World world = {.delay = delay, .geometric = geometric};
    world.means = allocate(arms, sizeof(double));
    for (int arm = 0; arm < arms; arm++)
        world.means[arm] = 0.25 + 0.5 * arm / (arms - 1);
    world.pulled = allocate(rounds + 1, sizeof(int));
    world.reward = allocate(rounds + 1, sizeof(double));
    world.first = allocate(rounds + 1, sizeof(int));
    world.following = allocate(rounds + 1, sizeof(int));
    return world;
}

int main(int argc, char **argv)
{
    if (argc != 8 || atoi(argv[2]) < 2 || atoi(argv[3]) < 1 || atoi(argv[4]) < 1 || atoi(argv[6]) < 2) {
        fprintf(stderr, "usage: policies <policy> <arms, from 2> <rounds> <delay> <fixed | geometric>"
                        " <replications, from 2> <seed>\n");
        return 2;
    }
    const char *name = argv[1];
    int arms = atoi(argv[2]), rounds = atoi(argv[3]), delay = atoi(argv[4]), replications = atoi(argv[6]);
    Random random;
    seed_random(&random, strtoull(argv[7], NULL, 10));
    Policy policy = new_policy(arms, rounds, 1.0 / delay);
    World world = new_world(arms, rounds, delay, !strcmp(argv[5], "geometric"));

    double *regret = allocate(replications, sizeof(double));
    double began = seconds();
    for (int i = 0; i < replications; i++)
        regret[i] = replicate_named(name, &world, &policy, &random);
    double elapsed = seconds() - began;

    double mean = 0, squares = 0;
    for (int i = 0; i < replications; i++)
        mean += regret[i] / replications;
    for (int i = 0; i < replications; i++)
        squares += (regret[i] - mean) * (regret[i] - mean);
    double error = sqrt(squares / (replications - 1) / replications);
    printf("%.3f %.6f %.6f\n", elapsed / replications / rounds * 1e9, mean, error);
    return 0;
}
