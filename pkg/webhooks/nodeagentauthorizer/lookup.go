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
	// rememberFor is how long a read from an API server is reused. It limits the load that denied requests cause.
	rememberFor = time.Second
	// rememberMost is the maximum number of remembered facts of each kind. Each takes some hundred bytes.
	rememberMost = 4096
	// readTimeout limits a read from an API server.
	readTimeout = 4 * time.Second
	// readsPerSecond and readsAtOnce limit the reads of objects that a single node agent chooses with its requests.
	readsPerSecond, readsAtOnce = 20, 100
	// limitFor is how long the limit of an idle node agent is kept. It has recovered by then.
	limitFor = time.Minute
	// parsedFor is how long the references of an unchanged configuration are remembered.
	parsedFor = time.Hour
)

// tooManyReadsError is the error if a node agent exceeds its limit of reads.
type tooManyReadsError struct{}

// Error returns the message with the limit.
func (tooManyReadsError) Error() string {
	return fmt.Sprintf("the node agent exceeds %d requests per second that need a read from an API server; retry later", readsPerSecond)
}

// lookup reads facts, and remembers for a short time those that caches do not hold. It is safe for concurrent use.
type lookup struct {
	source, target Cluster
	// machineNamespace is the namespace of the Machines.
	machineNamespace string
	clock            clock.PassiveClock
	metrics          Metrics

	flights singleflight.Group
	// remembered maps keys of reads to their results. A result is a nil pointer if the object does not exist.
	remembered *cache.LRUExpireCache
	// parsed maps names of Secrets to the references of their configurations.
	parsed *cache.LRUExpireCache
	// limits maps node agents to limiters of their reads.
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

// view provides the facts for one node agent.
type view struct {
	*lookup
	// agent is the name of its Machine.
	agent string
	// live is set if caches must not be used.
	live bool
}

// read reads from the cache of a cluster. If the view is live, it reads from the API server.
func read[T any](
	ctx context.Context, v *view, cluster Cluster, kind, name string, from func(context.Context, client.Reader) (*T, error),
) (*T, error) {
	if !v.live {
		return orNil(from(ctx, cluster.Cache))
	}
	key := kind + "/" + name
	if known, found := v.remembered.Get(key); found {
		return known.(*T), nil //nolint:errcheck,forcetypeassert // the kind determines the type
	}
	return flight(ctx, v.lookup, kind, name, func(ctx context.Context) (*T, error) {
		if known, found := v.remembered.Get(key); found { // by a concurrent read
			return known.(*T), nil //nolint:errcheck,forcetypeassert // the kind determines the type
		}
		v.metrics.reads.Inc(kind)
		value, err := orNil(from(ctx, cluster.Live))
		if err == nil {
			v.remembered.Add(key, value, rememberFor)
		}
		return value, err
	})
}

// check reads from the API server of the target cluster whether a condition holds for an object that the node agent
// chose. It remembers a negative result for rememberFor, and limits the number of reads per node agent.
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

// flight makes one read from an API server for all concurrent requests for the same object.
func flight[T any](ctx context.Context, l *lookup, kind, name string, from func(context.Context) (T, error)) (T, error) {
	value, err, _ := l.flights.Do(kind+"/"+name, func() (any, error) {
		// The first request might be cancelled before the others.
		ctx, cancel := detached(ctx)
		defer cancel()
		return from(ctx)
	})
	if err != nil {
		var none T
		return none, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return value.(T), nil //nolint:errcheck,forcetypeassert // the kind determines the type
}

// detached returns a context that ends by the deadline of its parent, but not when the parent is cancelled.
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

// orNil returns nil without an error if the object was not found.
func orNil[T any](value *T, err error) (*T, error) {
	if err == nil {
		return value, nil
	}
	return nil, client.IgnoreNotFound(err)
}
