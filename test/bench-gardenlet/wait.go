package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/measure"
)

// awaitSeed waits until the Seed is ready for Shoots.
func (w *world) awaitSeed(ctx context.Context) error {
	seed, last := &corev1beta1.Seed{}, ""
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(ctx context.Context) (bool, error) {
		if err := w.garden.Get(ctx, client.ObjectKey{Name: seedName}, seed); err != nil {
			last = err.Error()
			return false, client.IgnoreNotFound(err)
		}
		operation := seed.Status.LastOperation
		last = fmt.Sprintf("%+v", operation)
		return operation != nil && operation.State == corev1beta1.LastOperationStateSucceeded, nil
	})
	if err != nil {
		return fmt.Errorf("the Seed is not ready: %w: %s", err, last)
	}
	return nil
}

// awaitShoots waits until all Shoots have succeeded and their API servers are available.
func (w *world) awaitShoots(ctx context.Context, count int) error {
	done, last, reported := 0, "", time.Now()
	list := &corev1beta1.ShootList{}
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if err := w.garden.List(ctx, list); err != nil {
			return false, fmt.Errorf("list the Shoots: %w", err)
		}
		done = 0
		for i := range list.Items {
			operation := list.Items[i].Status.LastOperation
			if operation != nil && operation.State == corev1beta1.LastOperationStateSucceeded {
				done++
				continue
			}
			last = fmt.Sprintf("Shoot %s: %+v", list.Items[i].Name, operation)
		}
		if time.Since(reported) > reportEvery {
			reported = time.Now()
			w.say("%d of %d", done, count)
		}
		return done == count, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d Shoots are created: %w: %s", done, count, err, last)
	}
	return nil
}

// ours reports whether gardenlet sent a request that counts. Its heartbeat asks the API server of the Seed for its health.
func ours(request measure.Request) bool {
	return request.Client == gardenlet && request.Counts() && request.Resource != "/healthz"
}

// settle waits until gardenlet sends no requests to the garden and the Seed.
func (w *world) settle(ctx context.Context) error {
	last := time.Now()
	err := wait.PollUntilContextTimeout(ctx, poll, settleTimeout, true, func(context.Context) (bool, error) {
		for _, log := range w.logs {
			fresh, err := log.Read()
			if err != nil {
				return false, err
			}
			for _, request := range fresh {
				if ours(request) && request.Ended.After(last) {
					last = request.Ended
				}
			}
		}
		return time.Since(last) >= quiet, nil
	})
	if err != nil {
		return fmt.Errorf("wait until gardenlet is at rest: %w", err)
	}
	return nil
}

// skip forgets all requests so far.
func (w *world) skip() error {
	for _, log := range w.logs {
		if err := log.Skip(); err != nil {
			return err
		}
	}
	return nil
}

// sent returns the requests of gardenlet since skip to the garden and to the Seed.
func (w *world) sent() (tallies, error) {
	var of [2]measure.Tally
	for i, log := range w.logs {
		if _, err := log.Read(); err != nil {
			return tallies{}, err
		}
		of[i] = log.Of(ours)
	}
	return tallies{Garden: of[0], Seed: of[1]}, nil
}

// name prints some of the selected requests of gardenlet since skip.
func (w *world) name(when string, selects func(measure.Request) bool) {
	for _, log := range w.logs {
		for _, request := range log.Some(func(r measure.Request) bool { return ours(r) && selects(r) }, named) {
			w.say("%s: %s %s %s", when, request.Verb, request.Resource, request.Object)
		}
	}
}
