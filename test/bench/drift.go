package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// driftInterval is the time between two changes. It does not depend on how soon the drift is corrected.
	driftInterval = 100 * time.Millisecond
	// driftBurst is the number of ConfigMaps in the second half that are changed at once.
	driftBurst = 10
)

// drift is the change of one ConfigMap. It is corrected when a later version of the object has the right content.
type drift struct {
	object   types.NamespacedName
	version  uint64
	answered time.Time
}

// driftTimes changes each of the chosen ConfigMaps once, and returns for each the time from the API server's
// response until it is seen to be right again. ConfigMaps that are not corrected within the time-out are omitted.
func (u *user) driftTimes(ctx context.Context, w workload, revision int, opts options) ([]time.Duration, error) {
	want := strconv.Itoa(revision)
	selector := client.MatchingLabels{labelSet: w.set}
	list := &corev1.ConfigMapList{}
	if err := u.client.List(ctx, list, selector, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list ConfigMaps: %w", err)
	}
	watcher, err := u.watchFrom(ctx, list, selector)
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	chosen := choose(w.configMaps(), opts.Drift, opts.Seed)
	changes := make(chan drift, len(chosen))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return u.changeAll(ctx, chosen, changes) })
	var times []time.Duration
	group.Go(func() (err error) {
		most := time.Duration(len(chosen))*driftInterval + opts.DriftTimeout
		times, err = awaitRepairs(ctx, watcher, changes, len(chosen), want, most)
		return err
	})
	return times, group.Wait()
}

// choose returns a number of the objects in random order.
func choose(keys []types.NamespacedName, count int, seed uint64) []types.NamespacedName {
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // not security-relevant
	keys = slices.Clone(keys)
	random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys[:min(count, len(keys))]
}

// changeAll changes the first half of the ConfigMaps one after the other, and the second half in bursts.
func (u *user) changeAll(ctx context.Context, keys []types.NamespacedName, changes chan<- drift) error {
	for done := 0; done < len(keys); {
		size := 1
		if done >= len(keys)/2 {
			size = min(driftBurst, len(keys)-done)
		}
		next := time.After(time.Duration(size) * driftInterval)
		burst := keys[done : done+size]
		err := forEach(ctx, size, func(ctx context.Context, i int) error {
			change, err := u.change(ctx, burst[i])
			if err == nil {
				changes <- change
			}
			return err
		})
		if err != nil {
			return err
		}
		done += size
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// change changes a ConfigMap as a user would by hand.
func (u *user) change(ctx context.Context, key types.NamespacedName) (drift, error) {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	body := fmt.Appendf(nil, `{"data":{%q:"changed by someone else"}}`, revisionKey)
	if err := u.client.Patch(ctx, configMap, client.RawPatch(types.MergePatchType, body), client.FieldOwner("somebody")); err != nil {
		return drift{}, fmt.Errorf("change ConfigMap %s: %w", key, err)
	}
	answered := time.Now()
	version, err := strconv.ParseUint(configMap.ResourceVersion, 10, 64)
	return drift{object: key, version: version, answered: answered}, err
}

// repair is a ConfigMap with the right content in a watch event.
type repair struct {
	version uint64
	seen    time.Time
}

// awaitRepairs matches changes with watch events. Either may come first.
func awaitRepairs(ctx context.Context, watcher watch.Interface, changes <-chan drift, count int, want string, most time.Duration,
) ([]time.Duration, error) {
	timeout := time.After(most)
	var times []time.Duration
	changed := map[types.NamespacedName]drift{}
	right := map[types.NamespacedName]repair{}
	for len(times) < count {
		var key types.NamespacedName
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout:
			return times, nil
		case change := <-changes:
			key = change.object
			changed[key] = change
		case event, open := <-watcher.ResultChan():
			seen := time.Now()
			if err := eventError(event, open); err != nil {
				return nil, err
			}
			configMap, ok := event.Object.(*corev1.ConfigMap)
			if !ok || configMap.Data[revisionKey] != want {
				continue
			}
			version, err := strconv.ParseUint(configMap.ResourceVersion, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read the version of a ConfigMap: %w", err)
			}
			key = client.ObjectKeyFromObject(configMap)
			right[key] = repair{version: version, seen: seen}
		}
		change, isChanged := changed[key]
		if repair := right[key]; isChanged && repair.version > change.version {
			times = append(times, max(0, repair.seen.Sub(change.answered)))
			delete(changed, key)
		}
	}
	return times, nil
}
