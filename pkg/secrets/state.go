package secrets

import "time"

// State is what a decision is made from.
type State struct {
	// Identity is that of the component that keeps the Secrets.
	Identity string
	// Existing are the Secrets with that identity.
	Existing []Secret
	// Saved are the persisted Secrets of the saved state of the Shoot. Those that are lost are restored from it.
	Saved []Secret
	// Adoptable are Secrets of others whose data are taken over, by the name of the config.
	Adoptable map[string][]Secret
	// Rotations by the name of the config.
	Rotations map[string]Rotation
	Now       time.Time
}

// Item is what there is for a config.
type Item struct {
	Config  Config
	Current Secret
	// Old is the Secret before the rotation; nil if there is none, or if it is not accepted any more.
	Old *Secret
	// Active is the one to sign tokens and to encrypt with: the old one until all servers accept the current one. See [Rotation].
	Active Secret
	// Bundle has the certificates or keys of both, to trust them; nil for what has no bundle.
	Bundle *Secret
}

// Request is something that has to be generated.
type Request struct {
	Config Config
	// Secret is what is generated, without its data.
	Secret Secret
	// Signer is the authority of a certificate.
	Signer *Secret
	// Trusted is the bundle of the authority of a kubeconfig's server, and Tokens the data that it takes its token from.
	Trusted, Tokens Material
	// Adopted are the data that are taken over instead; nil for none.
	Adopted Material
	// Previous are the data before a change of the config, which keeps passwords and tokens; nil if there are none, or they are rotated.
	Previous Material
	// Rotated is the value that the name was made from.
	Rotated time.Time
}

// Result is what a decision found. It is complete if nothing is missing.
type Result struct {
	Items map[string]Item
	// Restore are saved Secrets that are lost. They have to be created as they were.
	Restore []Secret
	// Missing has to be generated, and then the decision to be made again: what is signed comes after who signs it.
	Missing []Request
	// Bundles have to be created. They need nothing to be generated.
	Bundles []Secret
	// Relabel are Secrets that have to get these labels.
	Relabel []Secret
	// Unused are the Secrets that the configs do not need. See [Deletable].
	Unused []Secret
	// Next is when a certificate has to be renewed, or an old one dropped; zero for never.
	Next time.Time
	// LastRenewal is when a Secret was rotated or renewed last, among those that exist, used or not; zero for never. It stays when configs are added,
	// changed or left out, so that it distinguishes renewals from changes of the program.
	LastRenewal time.Time
}

// Complete reports whether nothing has to be written but labels.
func (r Result) Complete() bool { return len(r.Restore)+len(r.Missing)+len(r.Bundles) == 0 }
