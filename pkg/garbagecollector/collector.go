// Package garbagecollector deletes unreferenced ConfigMaps and Secrets of the target cluster that have the label of
// package references. It reads only metadata, and the spec of ManagedResources if it would delete a Secret.
//
// References are listed after the candidates, and again before each batch of deletions. A candidate is deleted only if
// both lists do not reference it, and only in the version that was listed. For a Secret, the ManagedResources of its
// namespace are listed once more right before its deletion. Kubernetes has no transactions across objects, so a
// reference to an old object may still be created between the last list and the deletion. A client excludes that by
// changing the object before it refers to it: the object is then kept for the minimum age, and a deletion that was
// decided before fails, because of its resourceVersion. Waiting for a second run would not shorten that window. It would
// delay every deletion by a sync period, and a restart would forget the first run.
package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
)

// ControllerName names the controller in logs.
const ControllerName = "garbage-collector"

// requestTimeout limits the time of each request, so that every run ends.
const requestTimeout = time.Minute

// Kinds reports which kinds the target cluster has.
type Kinds interface {
	// Abolished reports whether no version of a kind is served. An error means that this is unknown.
	Abolished(ctx context.Context, kind schema.GroupKind) (bool, error)
}

// Options are the settings of the collector.
type Options struct {
	// SyncPeriod is the time between two runs.
	SyncPeriod time.Duration
	// Namespaces are the namespaces of the target cluster in which it deletes objects and lists references; empty for all.
	Namespaces []string
}

// Collector deletes garbage.
type Collector struct {
	// Metadata reads and deletes objects of the target cluster.
	Metadata metadata.Interface
	// Dynamic reads the spec of ManagedResources of the target cluster, for the Secrets that they reference.
	Dynamic dynamic.Interface
	// Kinds reports which kinds the target cluster has.
	Kinds Kinds
	// Metrics may be the zero value.
	Metrics Metrics
	Log     logr.Logger
	Clock   clock.Clock
	Options Options
}

// New completes a collector whose exported fields are set.
func New(c Collector) *Collector {
	namespaces := slices.Clone(c.Options.Namespaces)
	slices.Sort(namespaces)
	c.Options.Namespaces = slices.Compact(namespaces)
	return &c
}

// NeedLeaderElection makes the collector run only in the leader.
func (c *Collector) NeedLeaderElection() bool { return true }

// Start runs the collection immediately and then in each sync period until the context ends. A failed run is retried
// sooner.
func (c *Collector) Start(ctx context.Context) error {
	for failures := 0; ; {
		again := c.Options.SyncPeriod
		if err := c.Collect(ctx); err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			again = nextRun(failures, c.Options.SyncPeriod)
			c.Log.Error(err, "Garbage collection failed", "again", again.String())
		}
		timer := c.Clock.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// Collect runs the collection once. The error wraps a *DeletionError if objects could not be deleted. After a failed
// list, nothing more is deleted.
func (c *Collector) Collect(ctx context.Context) error {
	started := c.Clock.Now()
	result := &report{candidates: map[string]int{}, deleted: map[string]int{}}
	err := c.collect(logr.NewContext(ctx, c.Log), result)
	switch {
	case ctx.Err() != nil:
		err, result.failures = ctx.Err(), nil // every failure has the same cause
	case len(result.failures) > 0:
		result.listFailed = err != nil
		err = errors.Join(err, &DeletionError{Errors: result.failures})
	default:
		result.listFailed = err != nil
	}
	duration := c.Clock.Since(started)
	c.Metrics.observe(result, err, c.Clock.Now(), duration)
	c.Log.Info("Collected garbage", "complete", err == nil, "duration", duration.String(),
		"configMaps", result.candidates["ConfigMap"], "secrets", result.candidates["Secret"],
		"young", result.young, "unused", result.unused, "deleted", result.deleted["ConfigMap"]+result.deleted["Secret"],
		"referredToMeanwhile", result.saved, "changedMeanwhile", result.changed, "failed", len(result.failures))
	return err
}

func (c *Collector) collect(ctx context.Context, result *report) error {
	// Candidates are listed first, so an object that is created while references are listed is not a candidate.
	candidates, err := c.candidates(ctx)
	if err != nil {
		return fmt.Errorf("%w; no objects are deleted", err)
	}
	result.listed = true
	for _, one := range candidates {
		result.candidates[one.kindName()]++
	}
	old := mature(candidates, c.Clock.Now())
	if result.young = len(candidates) - len(old); len(old) == 0 {
		return nil
	}
	references, err := c.references(ctx)
	if err != nil {
		return fmt.Errorf("%w; no objects are deleted", err)
	}
	garbage, err := c.garbageAmong(ctx, old, references)
	if err != nil {
		return fmt.Errorf("%w; no objects are deleted", err)
	}
	result.unused = len(garbage)
	for batch := range slices.Chunk(garbage, batchSize) {
		references, err := c.references(ctx)
		if err != nil {
			return fmt.Errorf("%w; the run stops without further deletions", err)
		}
		still, err := c.garbageAmong(ctx, batch, references)
		if err != nil {
			return fmt.Errorf("%w; the run stops without further deletions", err)
		}
		result.saved += len(batch) - len(still)
		c.deleteAll(ctx, still, result)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
