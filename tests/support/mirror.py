"""Modules without a test file of their name, and where they are tested."""

WITHOUT_OWN_TEST = {
    "attempts.fields": "test_record reads every kind of field by it",
    "attempts.index.check": "integration/coral/records/test_integrity, whose check of all records uses it",
    "attempts.index.file": "test_index opens, damages and locks the file",
    "attempts.index.row": "test_index and test_query compare rows with records",
    "heartbeats.example": "test_prompts renders every prompt with it",
    "workspace.errors": "raised by all of workspace; test_disk tells errors apart by git's own words",
    "workspace.gitenv": "test_git and test_submit run git in hostile surroundings",
    "workspace.loose_object": "test_intake and test_hostile hand in objects of every kind",
}
