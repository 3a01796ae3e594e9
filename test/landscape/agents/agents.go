package agents

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Options select the agents that run.
type Options struct {
	// Node is the name of this node.
	Node string
	// NetworkPolicies enforces NetworkPolicies for the Pods of this node.
	NetworkPolicies bool
	// PodNetwork is the directory for the CNI configuration of this node. It also enables routes to the Pods of other nodes.
	// If empty, the agent does neither.
	PodNetwork string
	// ClusterPods is the network of all Pods. Packets from Pods to other destinations get the address of the node.
	ClusterPods netip.Prefix
	// LoadBalancers is the network that Services get addresses from. If it is not valid, Services get none.
	LoadBalancers netip.Prefix
}

// settle is how long an agent waits for further changes before it acts.
const settle = 20 * time.Millisecond

// retry is how long an agent waits after a failure before it retries.
const retry = time.Second

// agent is one of the agents of a node. It acts on the whole state after each change.
type agent struct {
	name string
	act  func(ctx context.Context) error
	wake chan struct{}
}

func newAgent(name string, act func(context.Context) error, watched ...cache.SharedIndexInformer) (*agent, error) {
	a := &agent{name, act, make(chan struct{}, 1)}
	changed := func() {
		select {
		case a.wake <- struct{}{}:
		default: // an action is already pending
		}
	}
	for _, informer := range watched {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		})
		if err != nil {
			return nil, fmt.Errorf("watching for %s: %w", name, err)
		}
	}
	return a, nil
}

func (a *agent) run(ctx context.Context) {
	for pause := settle; ; {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = settle
		if err := a.act(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "The agent failed and will retry", "agent", a.name)
			pause = retry
			select {
			case a.wake <- struct{}{}:
			default:
			}
		}
	}
}

// Run runs the agents until the context ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	if o.Node == "" {
		return errors.New("the name of the node is missing")
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	var agents []*agent
	for _, part := range []struct {
		wanted bool
		make   func() (*agent, error)
	}{
		{o.NetworkPolicies, func() (*agent, error) { return networkPolicies(factory, o) }},
		{o.PodNetwork != "", func() (*agent, error) { return podNetwork(factory, o) }},
		{o.LoadBalancers.IsValid(), func() (*agent, error) { return loadBalancers(factory, client, o) }},
	} {
		if !part.wanted {
			continue
		}
		a, err := part.make()
		if err != nil {
			return err
		}
		agents = append(agents, a)
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("listing the objects of %s was interrupted", kind)
		}
	}
	done := make(chan struct{})
	for _, a := range agents {
		go func() {
			a.run(ctx)
			done <- struct{}{}
		}()
	}
	for range agents {
		<-done
	}
	return nil
}
