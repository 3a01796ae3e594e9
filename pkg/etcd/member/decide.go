// Package member runs one member of an etcd cluster: it decides how etcd starts, starts it, and reports on it by the Lease of the member. The
// operator of pkg/etcd reads these Leases. See docs/etcd.md.
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
	// actionWait: it does not start yet.
	actionWait action = "wait"
	// actionForm: it forms a new cluster of itself alone. Others join it.
	actionForm action = "form"
	// actionJoin: it joins the cluster that has been formed.
	actionJoin action = "join"
)

// decision is what a member without data does.
type decision struct {
	action action
	// why says what it waits for.
	why lease.State
	// clusters are those that it may join, and endpoints where members of them may answer.
	clusters, endpoints []string
	// served is set if the member has served before: then it has lost its data.
	served bool
}

// decide returns what a member without data does. It is pure. Only the first member forms a cluster, and only if no Lease says that one has
// been formed: an acknowledged write is recorded by that, since no member serves before its Lease says so.
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
		return decision{action: actionWait, why: lease.State{Reason: lease.ReasonJoining, Message: "the operator has not created the Lease " + name}}
	case len(clusters) == 0 && name == first:
		return decision{action: actionForm}
	case len(clusters) == 0:
		return decision{action: actionWait, why: lease.State{Reason: lease.ReasonJoining, Message: "the member " + first + " has not formed the cluster"}}
	}
	d := decision{action: actionJoin, clusters: slices.Sorted(maps.Keys(clusters)), endpoints: endpoints, served: served}
	if len(endpoints) == 0 {
		d.action, d.served = actionWait, true
		d.why = d.notJoined("there is no other member")
	}
	return d
}

// notJoined is the state of a member that has no data and cannot join the cluster.
func (d decision) notJoined(why string) lease.State {
	state := lease.State{Reason: lease.ReasonJoining}
	if d.served {
		state.Reason = lease.ReasonDataLost
	}
	state.Message = fmt.Sprintf("the volume has no data, the cluster %s has been formed, and %s", strings.Join(d.clusters, ", "), why)
	return state
}

// peer is a member in the list of a cluster.
type peer struct {
	id       uint64
	name     string
	peerURLs []string
}

// outdated returns the members of a list that are earlier lives of a member: what etcd knows of it must not come back with an empty volume,
// since it may have acknowledged what it does not know any more.
func outdated(peers []peer, name, peerURL string) []uint64 {
	var ids []uint64
	for _, p := range peers {
		if p.name == name || slices.Contains(p.peerURLs, peerURL) {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// initialCluster returns the setting of this name for a member that was added with an identifier. It must have all members.
func initialCluster(peers []peer, id uint64, name string) (string, error) {
	var entries []string
	for _, p := range peers {
		called := p.name
		if p.id == id {
			called = name
		}
		if called == "" {
			return "", fmt.Errorf("another member, %x, joins at the same time", p.id)
		}
		for _, url := range p.peerURLs {
			entries = append(entries, called+"="+url)
		}
	}
	return strings.Join(entries, ","), nil
}
