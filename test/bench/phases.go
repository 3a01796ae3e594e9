package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trellis-k8s/trellis/test/measure"
)

// profiledByDefault is the duration of a profile if no limit was measured.
const profiledByDefault = 5 * time.Second

// limit measures the bare client, and removes the objects that it created.
func (b *bench) limit(ctx context.Context) error {
	limits, err := b.limits(ctx, b.workload(fmt.Sprintf("limit-%d", len(b.results.Limits)+1), limitClass))
	b.results.Limits = append(b.results.Limits, limits)
	return err
}

func (b *bench) limits(ctx context.Context, w workload) (limits, error) {
	var result limits
	if err := b.user.createNamespaces(ctx, w); err != nil {
		return result, err
	}
	for i, into := range []*phase{&result.Create, &result.Update} {
		revision := i + 1
		what, err := prepare(w, revision)
		if err != nil {
			return result, err
		}
		patches, err := preparePatches(w, revision)
		if err != nil {
			return result, err
		}
		name := w.set + " " + []string{phaseCreate, phaseUpdate}[i]
		*into, err = b.measure(ctx, name, w, applied, func(ctx context.Context) error {
			return forEach(ctx, w.resources, func(ctx context.Context, i int) error {
				if err := b.user.write(ctx, what, i); err != nil {
					return err
				}
				return b.bare.send(ctx, patches[i])
			})
		})
		if err != nil {
			return result, err
		}
		if err := errors.Join(b.user.verify(ctx, w, revision), b.checkAudit(patches)); err != nil {
			return result, fmt.Errorf("%s: %w", name, err)
		}
	}
	return result, b.user.cleanUp(ctx, w)
}

// checkAudit checks that every request of the bare client is in the audit log. This implies that the log has all
// requests of the resource-manager, too.
func (b *bench) checkAudit(patches [][]patch) error {
	if _, err := b.audit.Read(); err != nil {
		return err
	}
	want := 0
	for _, patches := range patches {
		want += len(patches)
	}
	if got := b.audit.Count(func(r measure.Request) bool { return r.Client == measure.AgentPrefix+bareAgent }); got != want {
		return fmt.Errorf("the audit log has %d requests of the bare client, which sent %d", got, want)
	}
	return nil
}

// newTurn removes the workload of the last turn and prepares the next one.
func (b *bench) newTurn(ctx context.Context) error {
	if b.revision > 0 {
		if err := b.user.cleanUp(ctx, b.managed); err != nil {
			return err
		}
	}
	b.managed, b.revision = b.workload(fmt.Sprintf("managed-%d", len(b.results.Creates)+1), ""), 0
	return b.user.createNamespaces(ctx, b.managed)
}

// create measures the creation of all objects by the resource-manager.
func (b *bench) create(ctx context.Context) error {
	measured, err := b.apply(ctx, phaseCreate, b.results.limit(createOf))
	b.results.Creates = append(b.results.Creates, measured)
	return err
}

// update measures the update of all objects by the resource-manager.
func (b *bench) update(ctx context.Context) error {
	measured, err := b.apply(ctx, phaseUpdate, b.results.limit(updateOf))
	b.results.Updates = append(b.results.Updates, measured)
	return err
}

// apply makes the resource-manager apply the next revision, and counts its requests. The limit gives the
// approximate duration, for a profile.
func (b *bench) apply(ctx context.Context, name string, limit phase) (phase, error) {
	b.revision++
	what, err := prepare(b.managed, b.revision)
	if err != nil {
		return phase{}, err
	}
	expected := profiledByDefault
	if limit.Objects > 0 {
		expected = time.Duration(limit.Seconds / float64(limit.Objects) * float64(b.options.total()) * float64(time.Second))
	}
	profile := fmt.Sprintf("%d-%s", b.revision, name)
	var profiled func() error
	measured, err := b.measure(ctx, name, b.managed, applied, func(writing context.Context) error {
		profiled = b.manager.ProfileCPU(ctx, profile, expected)
		return b.user.writeAll(writing, what)
	})
	if err != nil {
		return phase{}, err
	}
	if measured.Requests, err = b.countRequests(ctx); err != nil {
		return phase{}, err
	}
	if err := b.user.verify(ctx, b.managed, b.revision); err != nil {
		return phase{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := profiled(); err != nil {
		return phase{}, err
	}
	return measured, b.manager.ProfileMemory(ctx, profile)
}

// countRequests waits until the resource-manager is idle, and counts its requests since the last call.
func (b *bench) countRequests(ctx context.Context) (measure.Tally, error) {
	if err := b.audit.Settle(ctx, owned, managerQuiet, managerMost); err != nil {
		return nil, err
	}
	counted := b.audit.Of(measure.Request.ByManager)
	return counted, b.audit.Skip()
}

// owned selects the requests of the resource-manager that count.
func owned(r measure.Request) bool { return r.ByManager() && r.Counts() }

// restart starts the resource-manager with all objects present and unchanged.
func (b *bench) restart(ctx context.Context) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	if err := b.manager.Start(ctx); err != nil {
		return err
	}
	if err := b.audit.Settle(ctx, owned, startQuiet, startMost); err != nil {
		return err
	}
	requests := b.audit.Of(measure.Request.ByManager)
	result := &restart{ReadySeconds: b.manager.Ready.Seconds(), Requests: requests}
	if last := b.audit.Last(measure.Request.ByManager); !last.IsZero() {
		result.IdleSeconds = last.Sub(b.manager.Started).Seconds()
	}
	b.results.Restart = result
	b.say("restart: ready after %.1fs, last request after %.1fs, %d requests", result.ReadySeconds, result.IdleSeconds, requests.Total())
	return b.audit.Skip()
}

// rest observes the resource-manager while nothing changes.
func (b *bench) rest(ctx context.Context) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	profiled := b.manager.ProfileCPU(ctx, phaseRest, b.options.Rest)
	measured, err := b.begin(phaseRest)
	if err != nil {
		return err
	}
	b.say("rest: observing for %s", b.options.Rest)
	if err := sleep(ctx, b.options.Rest); err != nil {
		return err
	}
	if err := b.end(&measured, 0); err != nil {
		return err
	}
	memory, err := b.manager.Memory()
	if err != nil {
		return err
	}
	if _, err := b.audit.Read(); err != nil {
		return err
	}
	measured.Requests = b.audit.Of(measure.Request.ByManager)
	b.results.Rest, b.results.RestBytes = &measured, memory.RSS
	b.say("rest: %d requests, %.2fs CPU, %s resident", measured.Requests.Total(), measured.ManagerCPUSeconds, measure.Mebibytes(memory.RSS))
	if b.results.HeapBytes, err = b.manager.Heap(ctx); err != nil {
		return err
	}
	if err := profiled(); err != nil {
		return err
	}
	return b.manager.ProfileMemory(ctx, phaseRest)
}

// sleep waits for a duration in which no event is expected.
func sleep(ctx context.Context, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drift changes ConfigMaps and waits until they are corrected.
func (b *bench) drift(ctx context.Context) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	count := min(b.options.Drift, b.managed.count("ConfigMap"))
	b.say("drift: changing %d ConfigMaps", count)
	measured, err := b.begin(phaseDrift)
	if err != nil {
		return err
	}
	times, err := b.user.driftTimes(ctx, b.managed, b.revision, b.options)
	if err != nil {
		return fmt.Errorf("drift: %w", err)
	}
	if err := b.end(&measured, 0); err != nil {
		return err
	}
	if measured.Requests, err = b.countRequests(ctx); err != nil {
		return err
	}
	result := driftOf(measured, times, count, b.options.DriftTimeout)
	b.results.Drift = result
	b.say("drift: %d of %d corrected", result.PutBack, result.Changed)
	return nil
}

// delete deletes all ManagedResources.
func (b *bench) delete(ctx context.Context) error {
	measured, err := b.measure(ctx, phaseDelete, b.managed, gone, func(ctx context.Context) error { return b.user.deleteAll(ctx, b.managed) })
	if err != nil {
		return err
	}
	if measured.Requests, err = b.countRequests(ctx); err != nil {
		return err
	}
	b.results.Delete = &measured
	if err := b.user.verify(ctx, b.managed, 0); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
