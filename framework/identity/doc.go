// Package identity records the owner of a finalizer, an object, an entry, a container or a field.
//
// An [Identity] is the name of an operator and of one of its frameworks. Every mark that the two
// leave is made of both names. So two operators on the same kind, with resources of the same names,
// never mistake each other's things for their own. A framework puts its identity into the context
// of each reconciliation and each plan, as a [Scope]:
//
//	func (r *resource) GetCurrentState(ctx context.Context, obj *v1alpha1.Website) (State, error) {
//		scope := identity.From(ctx)
//		ours := scope.Mark("pages").Hash(obj.Namespace, obj.Name)          // the value of a label
//		for _, former := range scope.Former("pages", r.formerNames) { … }  // marks to adopt
//		for _, mark := range scope.Marks("pages", r.formerNames) { … }     // all marks
//	}
//
// Outside a framework, From returns the identity of the program: its main package, and
// [DefaultFramework].
//
// # Forms
//
// Every mark contains its form, so that a later version of this library can recognize the marks of
// an earlier one and adopt them: finalizers and hashes have the prefix [Form]. Names that fit are
// part of a mark unchanged. Names that are too long for it, or have characters that it can't have,
// are shortened and followed by a hash.
//
// # Former names
//
// Operators, frameworks and resources can be renamed: under their new name they are given the
// former ones, and adopt unchanged what carries these. A resource can be split: each new resource
// gets the former name, and adopts the things it desires. One of them deletes the things that none
// of them desires: the resource that still has the name, or else the last one in the order of the
// resource set ([Scope.Leaves]). If resources handle only some kinds of things, it is the last
// resource that handles the kind ([Scope.LeavesKind]).
//
// Everything here is safe for concurrent use.
package identity
