package worker

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

func TestNewToken(t *testing.T) {
	form, seen := regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`), map[string]bool{}
	for range 100 {
		token, err := newToken()
		text := token.id + "." + token.secret
		if err != nil || !form.MatchString(text) || seen[text] {
			t.Fatalf("%q, %v", text, err)
		}
		seen[text] = true
	}
}

// TestTokensEnd checks that a token exists only from the creation of its machine until the machine is a node, is gone, or the token has
// expired, and that the machine gets no other token.
func TestTokensEnd(t *testing.T) {
	in := newInputs(t, false)
	d := in.deployments[0]
	name := machineName(d.Name, d.Class, 0)
	out, err := in.decide()
	if err != nil {
		t.Fatal(err)
	}
	key := flow.Key{Namespace: in.namespace, Name: prefixToken + name}
	if !slices.ContainsFunc(out.Plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == key }) {
		t.Fatalf("the new machine has no token: %+v", out.Plan)
	}
	machine := Machine{Name: name, Deployment: d.Name, Class: d.Class, Created: now}
	token := issued{key: key, machine: name, expires: now.Add(20 * time.Minute)}
	for _, test := range []struct {
		what    string
		change  func(m *Machine, token *issued)
		gone    bool
		deleted bool
	}{
		{what: "the machine boots", change: func(*Machine, *issued) {}},
		{what: "the machine is a node", change: func(m *Machine, _ *issued) { m.Ready, m.WasReady = true, true }, deleted: true},
		{what: "the machine was a node", change: func(m *Machine, _ *issued) { m.WasReady = true }, deleted: true},
		{what: "the machine is deleted", change: func(m *Machine, _ *issued) { m.Deleting = true }, deleted: true},
		{what: "the machine is gone", gone: true, deleted: true},
		{what: "the token has expired", change: func(_ *Machine, token *issued) { token.expires = now }, deleted: true},
		{what: "the token is being deleted", change: func(m *Machine, token *issued) { m.WasReady, token.deleting = true, true }},
	} {
		in := in
		m, of := machine, token
		if test.change != nil {
			test.change(&m, &of)
		}
		in.machines, in.tokens = []Machine{m}, []issued{of}
		if test.gone {
			in.deployments[0].Least, in.machines = 0, nil
		}
		out, err := in.decide()
		if err != nil {
			t.Fatal(err)
		}
		deleted := slices.ContainsFunc(out.Plan.Tombstones, func(tombstone flow.Tombstone) bool { return tombstone.Key == key })
		renewed := slices.ContainsFunc(out.Plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Key == key })
		if deleted != test.deleted || renewed {
			t.Errorf("%s: deleted %t, made again %t", test.what, deleted, renewed)
		}
		if test.what == "the machine boots" && !out.Next.Equal(token.expires) {
			t.Errorf("the end of the token is looked at at %s", out.Next)
		}
		in.deployments[0].Least = 1
	}
}

// TestMachineWithoutToken checks that a machine is replaced at once if it has started again, because its Pod was deleted, and its token is
// used up, and that no other machine is.
func TestMachineWithoutToken(t *testing.T) {
	in := newInputs(t, false)
	d := in.deployments[0]
	name := machineName(d.Name, d.Class, 0)
	created := Machine{Name: name, Deployment: d.Name, Class: d.Class, Created: now}
	for what, test := range map[string]struct {
		change   func(*inputs, *Machine)
		replaced bool
	}{
		"it has started again":               {func(*inputs, *Machine) {}, true},
		"it has its token":                   {func(in *inputs, _ *Machine) { in.tokens = []issued{{machine: name, expires: now.Add(time.Minute)}} }, false},
		"it is a node":                       {func(_ *inputs, m *Machine) { m.Ready, m.WasReady, m.HasNode = true, true, true }, false},
		"it was a node":                      {func(_ *inputs, m *Machine) { m.WasReady, m.Changed = true, now }, false},
		"it is still there after its Worker": {func(_ *inputs, m *Machine) { m.Orphaned = true }, false},
		"its user data needs no token":       {func(in *inputs, _ *Machine) { in.deployments[0].UserData = []byte("#!/bin/sh\n") }, false},
	} {
		in, machine := in, created
		in.deployments = slices.Clone(in.deployments)
		test.change(&in, &machine)
		in.machines = []Machine{machine}
		out, err := in.decide()
		if err != nil {
			t.Fatal(err)
		}
		if replaced := slices.Contains(out.Removed, name); replaced != test.replaced || replaced != (len(out.Plan.Bundles) == 2) {
			t.Errorf("%s: removed %v, created %v", what, out.Removed, out.Plan.Bundles)
		}
		if in.machines[0].Failed {
			t.Errorf("%s: the decision has changed its input", what)
		}
	}
}

// TestUserDataWithoutToken checks that machines whose user data has no place for a token get none.
func TestUserDataWithoutToken(t *testing.T) {
	in := newInputs(t, false)
	in.deployments[0].UserData = []byte("#!/bin/sh\n")
	in.mint = nil
	out, err := in.decide()
	if err != nil || len(out.Plan.Bundles) != 1 {
		t.Errorf("%+v, %v", out.Plan, err)
	}
}
