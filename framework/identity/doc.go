// Package identity says whose a thing is: a finalizer, an object, an entry, a container, a field.
//
// An [Identity] is the name of an operator and of one of its frameworks. Every mark that either leaves in the world is made
// of both, so that two operators on the same kind, with resources of the same names, never take one another's things for
// their own. A framework puts its identity into the context of each reconciliation and each plan, as a [Scope]:
//
//	func (r *resource) GetCurrentState(ctx context.Context, obj *v1alpha1.Website) (State, error) {
//		scope := identity.From(ctx)
//		ours := scope.Mark("pages").Hash(obj.Namespace, obj.Name)             // the value of a label
//		for _, former := range scope.Former("pages", r.formerNames) { … }     // what is taken over
//		for _, mark := range scope.Marks("pages", r.formerNames) { … }        // both
//
// Outside of a framework, From gives the identity of the program: its main package, and [DefaultFramework].
//
// # Forms
//
// Every mark says which form it has, so that a later version of this library can tell those of the earlier one and take them
// over: finalizers and hashes begin with [Form]. Names that fit stand in a mark as they are; those that are too long for it,
// or have characters that it can't have, are shortened and followed by a hash.
//
// # Former names
//
// Operators, frameworks and resources can be renamed: under their new name they are given the former ones, and take over what
// stands under these as it is. A resource can be split: each of the new ones has the former name, and takes over what it
// desires. What none of them desires is deleted by one of them, which is the one that bears the name still, or else the last
// one in the order of the resource set ([Scope.Leaves]); of resources that look after some kinds of things only, the last one that
// looks after that kind ([Scope.LeavesKind]).
//
// Everything here is safe for concurrent use.
package identity
