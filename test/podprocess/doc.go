// Package podprocess runs the programs of Pods as processes of this machine, where nodes are simulated: with the arguments of their containers,
// the files of their volumes, and the addresses of this machine.
package podprocess
