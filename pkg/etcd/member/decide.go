// Package member runs one member of an etcd cluster. It decides how etcd starts, starts it, and reports its state in
// the Lease of the member. The operator in pkg/etcd reads these Leases. See docs/etcd.md.
package member

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

// action is how a member without data starts.
type action string

const (
	// actionWait: it waits.
	actionWait action = "wait"
	// actionForm: it creates a new cluster with itself as the only member. Others join it.
	actionForm action = "form"
	// actionJoin: it joins the existing cluster.
	actionJoin action = "join"
	// actionRestore: the only member of the cluster has lost its data. It restores the backups if there are any, and waits otherwise.
	actionRestore action = "restore"
)

// decision is the next action of a member without data.
type decision struct {
	action action
	// why describes what it waits for.
	why lease.State
	// clusters are the IDs of clusters that it may join, and endpoints the client URLs of their possible members.
	clusters, endpoints []string
	// served is set if the member has served before and has therefore lost its data.
	served bool
}

// decide returns the next action of a member without data. It is pure. Only the first member creates a cluster, and
// only if no Lease records an existing one. This protects acknowledged writes, because no member serves clients before
// its Lease records the cluster.
func decide(name, first string, members []lease.Member) decision {
	clusters := map[string]bool{}
	var endpoints []string
	known, served := false, false
	for _, member := range members {
		if member.Name == name {
			known, served = true, member.Holder != nil && member.Formed() != ""
		}
		if id := member.Formed(); id != "" {
			clusters[id] = true
		}
		if member.Name != name && member.ClientURL != "" {
			endpoints = append(endpoints, member.ClientURL)
		}
	}
	switch {
	case !known:
		message := "the operator has not created the Lease " + name
		return decision{action: actionWait, why: lease.State{Reason: lease.ReasonJoining, Message: message}}
	case len(clusters) == 0 && name == first:
		return decision{action: actionForm}
	case len(clusters) == 0:
		message := "the member " + first + " has not created the cluster yet"
		return decision{action: actionWait, why: lease.State{Reason: lease.ReasonJoining, Message: message}}
	}
	d := decision{action: actionJoin, clusters: slices.Sorted(maps.Keys(clusters)), endpoints: endpoints, served: served}
	if len(endpoints) == 0 {
		d.action, d.served = actionWait, true
		d.why = d.notJoined("there is no other member")
		if len(members) == 1 {
			d.action = actionRestore
		}
	}
	return d
}

// notJoined returns the state of a member that has no data and cannot join the cluster.
func (d decision) notJoined(why string) lease.State {
	state := lease.State{Reason: lease.ReasonJoining}
	if d.served {
		state.Reason = lease.ReasonDataLost
	}
	state.Message = fmt.Sprintf("the volume has no data, but the cluster %s exists: %s", strings.Join(d.clusters, ", "), why)
	return state
}

// peer is a member in the list of a cluster.
type peer struct {
	id       uint64
	name     string
	peerURLs []string
}

// outdated returns the previous instances of a member in a list. A member with an empty volume must not reuse its old
// ID, because it might have acknowledged writes that it no longer knows.
func outdated(peers []peer, name, peerURL string) []uint64 {
	var ids []uint64
	for _, p := range peers {
		if p.name == name || slices.Contains(p.peerURLs, peerURL) {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// initialCluster returns the etcd setting initial-cluster for a newly added member. It must list all members.
func initialCluster(peers []peer, id uint64, name string) (string, error) {
	var entries []string
	for _, p := range peers {
		called := p.name
		if p.id == id {
			called = name
		}
		if called == "" {
			return "", fmt.Errorf("another member, %x, is joining at the same time", p.id)
		}
		for _, url := range p.peerURLs {
			entries = append(entries, called+"="+url)
		}
	}
	return strings.Join(entries, ","), nil
}
