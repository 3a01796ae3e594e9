package nodeagentauthorizer

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// rememberFor is how long what was read from an API server is taken for true, so that denials cause no more load than this.
	rememberFor = time.Second
	// rememberMost is the number of remembered facts of each kind; each has some hundred bytes.
	rememberMost = 4096
	// readTimeout is how long an API server may take to answer.
	readTimeout = 4 * time.Second
	// readsPerSecond and readsAtOnce limit the reads of what a single node agent chooses by its requests.
	readsPerSecond, readsAtOnce = 20, 100
	// limitFor is how long a node agent that makes no requests is remembered. Its limit has recovered by then.
	limitFor = time.Minute
	// parsedFor is how long the references of a configuration are remembered, unless it changes before.
	parsedFor = time.Hour
)

// tooManyReadsError says that a node agent has used up its reads.
type tooManyReadsError struct{}

// Error says so.
func (tooManyReadsError) Error() string {
	return fmt.Sprintf("the node agent exceeds %d requests per second that need a read from an API server; retry later", readsPerSecond)
}

// lookup finds facts, and remembers for a moment those that caches do not hold. It may be used concurrently.
type lookup struct {
	source, target Cluster
	// machineNamespace is that of the Machines.
	machineNamespace string
	clock            clock.PassiveClock
	metrics          Metrics

	flights singleflight.Group
	// remembered holds what was read by the key of the read; nil pointers for what is not there.
	remembered *cache.LRUExpireCache
	// parsed holds the references of configurations by the name of their Secret.
	parsed *cache.LRUExpireCache
	// limits holds a limiter of reads for each node agent.
	limits *cache.LRUExpireCache
}

func newLookup(options Options) *lookup {
	l := &lookup{
		source: options.Source, target: options.Target, clock: options.Clock, metrics: options.Metrics,
		remembered: cache.NewLRUExpireCacheWithClock(rememberMost, options.Clock),
		parsed:     cache.NewLRUExpireCacheWithClock(rememberMost, options.Clock),
		limits:     cache.NewLRUExpireCacheWithClock(rememberMost, options.Clock),
	}
	if options.MachineNamespace != nil {
		l.machineNamespace = *options.MachineNamespace
	}
	return l
}

// view is the facts for one node agent.
type view struct {
	*lookup
	// agent is the name of its Machine.
	agent string
	// live is set if caches must not be used.
	live bool
}

// read reads from the cache of a cluster or, if the view is live, from its API server.
func read[T any](ctx context.Context, v *view, cluster Cluster, kind, name string, from func(context.Context, client.Reader) (*T, error)) (*T, error) {
	if !v.live {
		return orNil(from(ctx, cluster.Cache))
	}
	key := kind + "/" + name
	if known, found := v.remembered.Get(key); found {
		return known.(*T), nil //nolint:errcheck,forcetypeassert // the kind decides about the type
	}
	return flight(ctx, v.lookup, kind, name, func(ctx context.Context) (*T, error) {
		if known, found := v.remembered.Get(key); found { // from a read that has just ended
			return known.(*T), nil //nolint:errcheck,forcetypeassert // the kind decides about the type
		}
		v.metrics.reads.Inc(kind)
		value, err := orNil(from(ctx, cluster.Live))
		if err == nil {
			v.remembered.Add(key, value, rememberFor)
		}
		return value, err
	})
}

// check asks the API server of the target cluster about an object that the node agent chose, in which case the answer no is
// remembered for a moment, and the number of answers is limited.
func check(ctx context.Context, v *view, kind, name string, ask func(context.Context, client.Reader) (bool, error)) (bool, error) {
	key := kind + "/" + name + "/" + v.agent
	if _, found := v.remembered.Get(key); found {
		return false, nil
	}
	if !v.limiter().TryAccept() {
		return false, tooManyReadsError{}
	}
	yes, err := flight(ctx, v.lookup, kind, name+"/"+v.agent, func(ctx context.Context) (bool, error) {
		v.metrics.reads.Inc(kind)
		return ask(ctx, v.target.Live)
	})
	if err == nil && !yes {
		v.remembered.Add(key, nil, rememberFor)
	}
	return yes, err
}

// flight reads from an API server once for all concurrent requests for the same object.
func flight[T any](ctx context.Context, l *lookup, kind, name string, from func(context.Context) (T, error)) (T, error) {
	value, err, _ := l.flights.Do(kind+"/"+name, func() (any, error) {
		// The first request may be cancelled before the others.
		ctx, cancel := detached(ctx)
		defer cancel()
		return from(ctx)
	})
	if err != nil {
		var none T
		return none, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return value.(T), nil //nolint:errcheck,forcetypeassert // the kind decides about the type
}

// detached returns a context that ends in time for its parent, but not because that was cancelled.
func detached(parent context.Context) (context.Context, context.CancelFunc) {
	timeout := readTimeout
	if deadline, found := parent.Deadline(); found {
		timeout = min(timeout, time.Until(deadline))
	}
	return context.WithTimeout(context.WithoutCancel(parent), timeout)
}

func (v *view) limiter() flowcontrol.PassiveRateLimiter {
	known, found := v.limits.Get(v.agent)
	limiter, isLimiter := known.(flowcontrol.PassiveRateLimiter)
	if !found || !isLimiter {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(readsPerSecond, readsAtOnce, v.clock)
	}
	v.limits.Add(v.agent, limiter, limitFor)
	return limiter
}

// orNil returns nil for what is not there.
func orNil[T any](value *T, err error) (*T, error) {
	if err == nil {
		return value, nil
	}
	return nil, client.IgnoreNotFound(err)
}
