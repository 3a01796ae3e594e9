// Package watches has what several controllers need for their watches.
package watches

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// electedCache is a cache that a manager runs in the leader alone, or in every replica.
type electedCache struct {
	cache.Cache
	leader bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c electedCache) NeedLeaderElection() bool { return c.leader }

// InLeader returns what runs a cache only in the leader: other replicas do not need it.
func InLeader(of cache.Cache) manager.Runnable { return electedCache{of, true} }

// InEveryReplica returns what runs a cache in every replica. A manager would run it in the leader alone: a cache does not say itself
// that it needs no election.
func InEveryReplica(of cache.Cache) manager.Runnable { return electedCache{of, false} }

// OnChange returns the source of requests for what an object affects, or affected before it changed. Updates without a difference are
// left out; resyncs count as changes.
func OnChange[T client.Object](in cache.Cache, object T, differ func(before, after T) bool, affected func(context.Context, T) []types.NamespacedName,
) source.SyncingSource {
	return source.Kind(in, object,
		handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object T) []reconcile.Request {
			names := affected(ctx, object)
			requests := make([]reconcile.Request, 0, len(names))
			for _, name := range names {
				requests = append(requests, reconcile.Request{NamespacedName: name})
			}
			return requests
		}),
		predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() || differ(e.ObjectOld, e.ObjectNew)
		}})
}
