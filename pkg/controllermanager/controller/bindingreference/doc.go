// Package bindingreference contains the garden's controllers that label and keep what SecretBindings and CredentialsBindings refer to.
package bindingreference
