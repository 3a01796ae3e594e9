// Package requester identifies the programs of Seeds and of self-hosted Shoots by their user names and groups.
package requester

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Program is the kind of a program.
type Program string

// The programs.
const (
	// Gardenlet is the gardenlet of a Seed or of a self-hosted Shoot.
	Gardenlet Program = "gardenlet"
	// Extension is a controller of an extension, with a ServiceAccount in the garden.
	Extension Program = "extension"
	// Gardenadm sets up a self-hosted Shoot.
	Gardenadm Program = "gardenadm"
)

const (
	prefixServiceAccount = "system:serviceaccount:"
	prefixExtension      = "extension-"
	// prefixShootExtension begins the names of the ServiceAccounts of extensions in self-hosted Shoots, which are
	// extension-shoot--<shoot>--<installation>.
	prefixShootExtension = "extension-shoot--"
)

// Requester is a program that works for one Seed or for one self-hosted Shoot.
type Requester struct {
	Program Program
	// Seed is the name of the Seed. It is empty if the program works for a Shoot.
	Seed string
	// Shoot is the self-hosted Shoot. It is empty if the program works for a Seed.
	Shoot types.NamespacedName
}

// SeedNamespace is the namespace of the requester's Seed in the garden.
func (r Requester) SeedNamespace() string { return constants.PrefixSeedNamespace + r.Seed }

// String names the requester for messages.
func (r Requester) String() string {
	if r.Seed != "" {
		return string(r.Program) + " of Seed " + r.Seed
	}
	return string(r.Program) + " of Shoot " + r.Shoot.String()
}

// Of returns the requester with a user name and groups. It returns false for all other users. The names are those of Gardener.
func Of(user string, groups []string) (Requester, bool) {
	switch {
	case slices.Contains(groups, constants.SeedsGroup):
		seed, is := strings.CutPrefix(user, constants.PrefixSeedUser)
		return Requester{Program: Gardenlet, Seed: seed}, is && isName(seed)
	case slices.Contains(groups, constants.ShootsGroup):
		for prefix, program := range map[string]Program{constants.PrefixShootUser: Gardenlet, constants.PrefixGardenadmUser: Gardenadm} {
			if shoot, is := strings.CutPrefix(user, prefix); is {
				namespace, name, found := strings.Cut(shoot, ":")
				return Requester{Program: program, Shoot: types.NamespacedName{Namespace: namespace, Name: name}},
					found && isName(namespace) && isName(name)
			}
		}
		return Requester{}, false
	}
	account, is := strings.CutPrefix(user, prefixServiceAccount)
	if !is {
		return Requester{}, false
	}
	namespace, name, _ := strings.Cut(account, ":")
	// A user name can be chosen in a certificate. The groups of a ServiceAccount must agree.
	if !slices.Contains(groups, "system:serviceaccounts:"+namespace) {
		return Requester{}, false
	}
	return ofAccount(namespace, name)
}

// ofAccount returns the requester with a ServiceAccount.
func ofAccount(namespace, name string) (Requester, bool) {
	if seed, is := strings.CutPrefix(namespace, constants.PrefixSeedNamespace); is {
		return Requester{Program: Extension, Seed: seed}, isName(seed) && strings.HasPrefix(name, prefixExtension)
	}
	if namespace != constants.GardenNamespace && !strings.HasPrefix(namespace, constants.PrefixProjectNamespace) {
		return Requester{}, false
	}
	rest, is := strings.CutPrefix(name, prefixShootExtension)
	shoot, _, found := strings.Cut(rest, "--")
	return Requester{Program: Extension, Shoot: types.NamespacedName{Namespace: namespace, Name: shoot}}, is && found && isName(shoot)
}

func isName(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }
