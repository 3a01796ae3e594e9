package secrets

import (
	"strings"
	"time"
)

// State is the input of a decision.
type State struct {
	// Identity of the component that manages the Secrets.
	Identity string
	// Existing are the Secrets with this identity.
	Existing []Secret
	// Saved are the persisted Secrets in the saved state of the Shoot. Lost ones are restored from it.
	Saved []Secret
	// Adoptable are external Secrets whose data are adopted, by config name.
	Adoptable map[string][]Secret
	// Rotations by config name.
	Rotations map[string]Rotation
	Now       time.Time
}

// Item contains the Secrets of a config.
type Item struct {
	Config  Config
	Current Secret
	// Old is the Secret from before the rotation; nil if there is none or if it is no longer accepted.
	Old *Secret
	// Active is the Secret with which tokens are signed and data encrypted: the old one until all servers accept the
	// current one. See [Rotation].
	Active Secret
	// Bundle contains the certificates or keys of both Secrets for verification; nil for kinds without a bundle.
	Bundle *Secret
}

// Missing names the configs without a Secret in a sentence for users, such as for a wait; empty if all have one.
func Missing(configs []Config, generated map[string]Item) string {
	var missing []string
	for _, config := range configs {
		if _, found := generated[config.Name]; !found {
			missing = append(missing, config.Name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "secrets have not been generated: " + strings.Join(missing, ", ")
}

// Request is a Secret to generate.
type Request struct {
	Config Config
	// Secret is the new Secret without its data.
	Secret Secret
	// Signer is the authority of a certificate.
	Signer *Secret
	// Trusted is the CA bundle for a kubeconfig's server, and Tokens the data that contain its token.
	Trusted, Tokens Material
	// Adopted are the data to adopt instead of generating new ones; nil for none.
	Adopted Material
	// Previous are the data before a change of the config. Passwords and tokens are kept from them. Nil if there are none
	// or if they are rotated.
	Previous Material
	// Rotated is the rotation time in the name.
	Rotated time.Time
}

// Result is the outcome of a decision. It is complete if nothing has to be created.
type Result struct {
	Items map[string]Item
	// Restore are lost Secrets that must be created again with their saved data.
	Restore []Secret
	// Missing are the Secrets to generate. Resolve must then be called again, because signed certificates depend on their
	// authority.
	Missing []Request
	// Bundles are the bundles to create. Nothing is generated for them.
	Bundles []Secret
	// Relabel are existing Secrets with their new labels.
	Relabel []Secret
	// Unused are the Secrets without a config. See [Deletable].
	Unused []Secret
	// Next is when a certificate must be renewed or an old one dropped; zero for never.
	Next time.Time
	// LastRenewal is when an existing Secret, used or not, was last rotated or renewed; zero for never. It does not change
	// when configs are added, changed or removed, so that it distinguishes renewals from changes of the program.
	LastRenewal time.Time
}

// Complete reports whether no writes except of labels are required.
func (r Result) Complete() bool { return len(r.Restore)+len(r.Missing)+len(r.Bundles) == 0 }
