package policy

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/knftables"
)

// Table is the nftables table with the policies. Its family is inet.
const Table = "landscape-policy"

// Enforcer manages the rules of this network namespace.
type Enforcer struct {
	nft     knftables.Interface
	applied string
}

// NewEnforcer returns an enforcer for this network namespace. It needs the program nft.
func NewEnforcer() (*Enforcer, error) {
	nft, err := knftables.New(knftables.InetFamily, Table)
	if err != nil {
		return nil, fmt.Errorf("connecting to nftables: %w", err)
	}
	return &Enforcer{nft: nft}, nil
}

// Apply replaces all chains in one transaction. It does nothing if they equal the chains that it applied last.
func (e *Enforcer) Apply(ctx context.Context, chains []Chain) (changed bool, err error) {
	wanted := fmt.Sprint(chains)
	if e.applied == wanted {
		return false, nil
	}
	if err := e.nft.Run(ctx, transaction(e.nft.NewTransaction(), chains)); err != nil {
		e.applied = ""
		return false, fmt.Errorf("applying the rules of NetworkPolicies: %w", err)
	}
	e.applied = wanted
	return true, nil
}

func transaction(tx *knftables.Transaction, chains []Chain) *knftables.Transaction {
	table := &knftables.Table{Comment: knftables.PtrTo("NetworkPolicies")}
	tx.Add(table) // it must exist before it can be deleted
	tx.Delete(&knftables.Table{})
	tx.Add(table)
	for _, chain := range chains {
		tx.Add(&knftables.Chain{Name: chain.name()})
		for _, rule := range chain.Rules {
			tx.Add(&knftables.Rule{Chain: chain.name(), Rule: knftables.Concat(rule, "return")})
		}
		tx.Add(&knftables.Rule{Chain: chain.name(), Rule: "drop"})
	}
	// Packets are filtered after the translation of Service addresses. A Pod reaches the node itself through the input hook.
	// Packets that the node sends are not filtered.
	for _, hook := range []knftables.BaseChainHook{knftables.ForwardHook, knftables.InputHook} {
		base := string(hook)
		tx.Add(&knftables.Chain{
			Name: base, Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(hook),
			Priority: knftables.PtrTo(knftables.FilterPriority + "-5"),
		})
		tx.Add(&knftables.Rule{Chain: base, Rule: "ct state established,related accept"})
		for _, chain := range chains {
			if hook == knftables.ForwardHook || chain.Egress {
				tx.Add(&knftables.Rule{Chain: base, Rule: knftables.Concat(chain.selects(), "jump", chain.name())})
			}
		}
	}
	return tx
}

// name returns the name of the chain, which contains the address.
func (c Chain) name() string {
	direction := "in-"
	if c.Egress {
		direction = "out-"
	}
	return direction + strings.NewReplacer(".", "-", ":", "-").Replace(c.Address.String())
}

// selects returns the condition for the packets of the chain: packets of the Pod, except those to itself.
func (c Chain) selects() string {
	own, other := "daddr", "saddr"
	if c.Egress {
		own, other = other, own
	}
	f := family(c.Address)
	return fmt.Sprintf("%s %s %s %s %s != %s", f, own, c.Address, f, other, c.Address)
}
