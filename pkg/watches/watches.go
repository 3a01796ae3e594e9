// Package watches has helpers for the watches of several controllers.
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

// electedCache is a cache that a manager runs only in the leader, or in every replica.
type electedCache struct {
	cache.Cache
	leader bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c electedCache) NeedLeaderElection() bool { return c.leader }

// InLeader returns a runnable that runs a cache only in the leader. Other replicas do not need it.
func InLeader(of cache.Cache) manager.Runnable { return electedCache{of, true} }

// InEveryReplica returns a runnable that runs a cache in every replica. A manager would run a plain cache only in the
// leader, because it does not implement LeaderElectionRunnable.
func InEveryReplica(of cache.Cache) manager.Runnable { return electedCache{of, false} }

// OnChange returns a source of requests for the names that an object affects, or affected before it changed. Updates
// without a difference are ignored. Resyncs count as changes.
func OnChange[T client.Object](
	in cache.Cache, object T, differ func(before, after T) bool, affected func(context.Context, T) []types.NamespacedName,
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
